"""What several published encoders have in common: towers, tokenizers, pixel pipelines."""
