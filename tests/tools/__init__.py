"""The checks that `make lint` runs beside other people's."""
