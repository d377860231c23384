"""The partitions of this broker: appends, fetches, high watermarks, and the requests that wait for them."""
