"""Work behind the pages: a process claims tasks from the store, another, limited one does each of them.

`files` is where uploads lie, `analysis` what one task does, `cage` the limited process, `worker` the loop, `kinds` the
list of works.
"""
