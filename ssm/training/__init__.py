"""The training step, the epoch, and the loop over epochs of a group of seeds; nothing here knows a recipe or a file."""
