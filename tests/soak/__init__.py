"""The long checks at their full counts; see __main__.py."""
