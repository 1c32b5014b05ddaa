"""The constant C of an encoder, measured on a table of studies."""
