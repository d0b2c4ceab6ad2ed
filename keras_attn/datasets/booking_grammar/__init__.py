"""Synthetic turns of users who book a table in a restaurant.

`templates` has the wordings, `values` what fills them, and `turns` combines
them and knows the slots and the splits.
"""
