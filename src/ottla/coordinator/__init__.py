"""Who looks after groups and transactions: state that is kept in internal topics, and rebuilt from them alone."""
