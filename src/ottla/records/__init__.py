"""Record batches: the bytes that clients send and segments hold. Nothing here touches a file."""
