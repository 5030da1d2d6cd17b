"""Where the next edit is: candidate places, their features, and a small head that ranks them."""
