"""What a table can hold: types, names that clash, columns that grow, and its Parquet files."""
