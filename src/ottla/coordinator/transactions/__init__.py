"""The transaction coordinator: transactional ids step by step, markers, and the check before an append."""
