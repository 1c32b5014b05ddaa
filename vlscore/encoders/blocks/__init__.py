"""Networks, tokenizers and pixel operations that several encoders share."""
