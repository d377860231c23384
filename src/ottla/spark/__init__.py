"""The data pipeline on Spark: format("ottla") for reading and writing, pipelines, and jobs over many logs."""
