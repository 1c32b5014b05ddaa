"""Networks that read reports: CheXbert, RadGraph, RaTEScore, GREEN."""
