"""Rows of all cores that cores.txt names, as a table: spark-submit spark.py cores.txt leaks"""

import sys

from pyspark.sql import SparkSession

# A core that cannot be analysed has one row, 'facts core', with its error; the rest goes on.
FACTS = """sh -c 'while read -r core; do
    heapcore -q --threads 1 --format ndjson "$core" facts | sed "s|^{|{\\"core\\":\\"$core\\",|"
done'"""

spark = SparkSession.builder.appName("heapcore").getOrCreate()
cores = spark.sparkContext.textFile(sys.argv[1])
rows = spark.read.json(cores.repartition(max(1, cores.count())).pipe(FACTS))
leaks = rows.where("row = 'facts leak'").groupBy("fingerprint", "kind").agg(
    {"core": "count", "bytes": "sum"})
leaks.write.json(sys.argv[2])
