"""CSV snapshots for which our reader and Spark's must agree: both read the same rows of GOOD, and refuse BAD."""

from __future__ import annotations

HEADER = "cluster_id,taken_at,group,topic,partition,offset,leader_epoch,metadata"
AT = "2026-11-20T21:24:55.5Z"

GOOD = {
    "all that a header needs": "topic,partition\nt,0\n",
    "three columns with a header": "topic,partition,offset\nt,0,5\nt,1,\n",
    "four columns without a header": "g,t,0,5\ng,t,1,6\n",
    "cells in another order": "offset,partition,topic,group\n5,0,t,g\n",
    "empty cells": f"{HEADER}\n,,,t,0,,,\n",
    "the largest numbers": f"{HEADER}\nc,{AT},g,t,2147483647,9223372036854775807,2147483647,\n",
    "a quoted line feed": f'{HEADER}\nc,{AT},"g\nh",t,0,5,0,"say ""hi"""\n',
    "a guarded formula": f"{HEADER}\nc,{AT},'=1+1,t,0,5,0,''=1\n",
    "an escaped NUL": f"{HEADER}\nc,{AT},g,t,0,5,0,a\\u0000b\n",
    "the longest metadata": f"{HEADER}\n,,,t,0,,,{'é' * 16_383}x\n",
    "no row": f"{HEADER}\n",
}
BAD = {
    "nothing": "",
    "no line end": "topic,partition\nt,0",
    "an unknown column": "topic,partition,color\nt,0,red\n",
    "a column twice": "topic,partition,topic\nt,0,t\n",
    "no topic": "partition,offset\n0,5\n",
    "no partition": "topic,offset\nt,5\n",
    "a short row": "topic,partition,offset\nt,0\n",
    "a long row": "topic,partition,offset\nt,0,5,6\n",
    "an empty topic": "topic,partition\n,0\n",
    "an empty partition": "topic,partition\nt,\n",
    "a topic with a space": "topic,partition\nt u,0\n",
    "a negative offset": "topic,partition,offset\nt,0,-1\n",
    "a spreadsheet's number": "topic,partition,offset\nt,0,1.2E+09\n",
    "thousands": 'topic,partition,offset\nt,0,"1,000"\n',
    "a number with a space": "topic,partition,offset\nt,0, 5\n",
    "a number that is too large": "topic,partition,offset\nt,0,9223372036854775808\n",
    "a partition that is too large": "topic,partition,offset\nt,2147483648,5\n",
    "hexadecimal": "topic,partition,offset\nt,0,0x10\n",
    "a time of somewhere": "topic,partition,taken_at\nt,0,2026-11-20T21:24:55+01:00\n",
    "a day that is none": "topic,partition,taken_at\nt,0,2026-02-30T21:24:55Z\n",
    "a quote in a cell": 'topic,partition,offset\nt,0,"1"2\n',
    "a quote that stays open": 'topic,partition,offset\nt,0,"5\n',
    "metadata that is too long": f"{HEADER}\n,,,t,0,,,{'é' * 16_384}\n",
    "a byte order mark": "\ufefftopic,partition\nt,0\n",
}
