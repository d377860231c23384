"""Finished segments out of rows, for imports that no broker appends, and the journal that undoes half of one."""
