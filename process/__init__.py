"""What every process of ours needs, whatever it does."""
