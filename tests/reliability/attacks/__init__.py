"""Attacks with ordinary requests: nothing crashes, but everybody else would have to wait."""
