"""From raw records to rows: JSON, CSV and Avro."""
