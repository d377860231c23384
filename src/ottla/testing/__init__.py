"""Parts for tests: a simulated disk and clock. Real code runs on them unchanged."""
