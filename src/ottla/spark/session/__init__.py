"""A SparkSession: its Java, its JVM, the packages of its executors, the progress of its tasks."""
