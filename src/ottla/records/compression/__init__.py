"""The codecs of batches, in bounded memory."""
