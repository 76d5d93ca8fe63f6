import { onceTable } from './once-table.ts';
import type { FactsTable, ListedTable, Table } from './table-text.ts';
import { triageErrors, triageModels } from './triage-tables.ts';

type Columns = Readonly<Record<string, string>>;

const each = (
  path: string,
  columns: Columns,
  options: Pick<ListedTable, 'distinct' | 'boldBest'> = {},
): ListedTable => ({
  each: path,
  columns,
  ...options,
});
const facts = (head: FactsTable['head'], lines: FactsTable['facts']): FactsTable => ({ head, facts: lines });
/** Columns for each of several names. */
const across = (names: readonly string[], columnsOf: (name: string) => Columns): Columns =>
  Object.assign({}, ...names.map(columnsOf));

const FLAT_BASELINES = ['faiss', 'numpy', 'usearch'];
const flat = (engine: string): string => `/records[engine=${engine}][queries=$queries]`;
const torch = (type: string): string => `/baselines[type=${type}][queries=$queries].ms`;
const filteredSearch = (mode: string, queries: number): string =>
  `/records[mode=${mode}][queries=${queries}][passing=$passing]`;
const family = (precision: string): string => `/rows[family=$family][precision=${precision}][ratioToBaseline]`;

/** BM25 searches: many queries at once, and one at a time. */
function bm25Searches(corpus: string, engines: Readonly<Record<string, string>>): ListedTable {
  const of = (engine: string): string => `/records[engine=${engine}][case=$case]`;
  const [names, keys] = [Object.values(engines), Object.keys(engines)];
  return each(`records[engine=trawl][k][case~/${corpus}/]`, {
    queries: '{case:questions}',
    k: '{k:count}',
    threads: '{threads}',
    'Trawl, queries/s': '{queriesPerS:rate}',
    ...across(keys, (key) => ({
      [engines[key]!]: `{${of(key)}.queriesPerS:rate}`,
      [`${engines[key]} takes`]: `{${of(key)}.ratioToTrawl:times}`,
    })),
    [`one query, p50: Trawl, ${names.join(', ')}`]: ['trawl', ...keys]
      .map((key) => `{${of(key)}.p50Ms:ms:–}`)
      .join(', '),
  });
}

const memory = (...processes: readonly string[]): ListedTable =>
  each('memory', { loaded: '{name}', ...across(processes, (name) => ({ [name]: `{bytes.${name}:bytes}` })) });

/** Tables of a file of `trawl bench all`, and of its stages. */
const REPORT: Readonly<Record<string, Table>> = {
  machine: facts(['what', 'measured'], {
    day: '{stages.machine.environment.date:day}',
    machine:
      '{stages.machine.environment.processor}, {stages.machine.environment.cores} cores ({threads} used), {stages.machine.environment.memoryBytes:bytes}, Node.js {stages.machine.environment.node}',
    'instruction set of searches': '{stages.machine.result.environment.isa}',
    'peaks of the machine': '{stages.machine.result.peaks:peaks}',
    'load before the first stage': '{stages.machine.environment.loadBefore:1}',
    'compared with': '{stages:engines}',
    stages: '{stages:stageSeconds}',
  }),
  'exact-search': each('records[engine=trawl]', {
    'queries at once': '{queries}',
    Trawl: '{medianMs:ms}',
    ...across(FLAT_BASELINES, (engine) => ({
      [engine]: `{${flat(engine)}.medianMs:ms}`,
      [`${engine} takes`]: `{${flat(engine)}.ratioToTrawl:times}`,
    })),
  }),
  'exact-search-memory': each('records[engine=trawl]', {
    'queries at once': '{queries}',
    'M dot products/s': '{dotsPerS / 1e6:rate}',
    'rescored: median, p95, most': '{candidatesMedian:count}, {candidatesP95:count}, {candidatesMax:count}',
    'memory: Trawl': '{residentBytes:bytes}',
    ...across(FLAT_BASELINES, (engine) => ({ [engine]: `{${flat(engine)}.residentBytes:bytes}` })),
  }),
  'search-leads': each('records[engine=faiss]', {
    'queries at once': '{queries}',
    Trawl: `{${flat('trawl')}.medianMs:ms}`,
    FAISS: '{medianMs:ms}',
    'Trawl is faster by': '{ratioToTrawl:times}',
  }),
  'search-alone': each('records', {
    'queries at once': '{queries}',
    time: '{medianMs:ms}',
    'M dot products/s': '{dotsPerS / 1e6:rate}',
  }),
  encoders: each('records', {
    engine: '{engine} {precision}',
    'passages/s, median (fastest)': '{textsPerS:1} ({.:fastestTextsPerS})',
    '× baseline': '{ratioToBaseline:2}',
    'GFLOP/s': '{gflopPerS:0}',
    'query p50': '{queryP50Ms:ms}',
    'query p99': '{queryP99Ms:ms}',
    memory: '{residentBytes:bytes}',
    'smallest cosine with the baseline': '{cosineToBaseline:cosine}',
  }),
  'index-building': each('records', {
    passages: '{rows:count} × {dimension}',
    encoder: '{encoder}',
    time: '{seconds:1} s',
    'passages/s': '{passagesPerS:count}',
    index: '{indexBytes:bytes}',
    'most memory': '{peakMemoryBytes:bytes}',
    'writing as many bytes': '{diskSeconds:1} s',
  }),
  servers: each('records[engine~trawl]', {
    load: '{.:load}',
    Trawl: '{.:rateAndTimes}',
    'search-r1': '{/records[engine=search-r1][load=$load]:rateAndTimes}',
    'Trawl is better by': '{ratioToBaseline:times}',
    'failed, wrong': '{errors}, {wrong}',
  }),
  'server-loads': each('records[engine~trawl][load=lone|batch|verl|skyrl]', {
    load: '{.:clientLoad}',
    Trawl: '{.:rateAndTimes}',
    'that server': '{/records[engine=search-r1][load=$load]:rateAndTimes}',
    'Trawl is better by': '{ratioToBaseline:times}',
  }),
  'server-alone': each('records', {
    load: '`{load}`: {.:load}',
    rate: '{.:loadRate}',
    p50: '{p50Ms:ms}',
    p99: '{p99Ms:ms}',
    'p50 without queue, encoder and search': '{overheadP50Ms:ms:}',
    'failed, wrong': '{errors}, {wrong}',
  }),
  'recall-by-latency': each('records', {
    engine: '{engine}',
    efSearch: '{effort::exact}',
    recall: '{recall:share}',
    p50: '{p50Ms:ms}',
    p99: '{p99Ms:ms}',
    'queries/s, all at once': '{queriesPerS:rate}',
    'made in': '{buildSeconds:0} s',
    memory: '{residentBytes:bytes}',
  }),
  'end-to-end': each('records', {
    engine: '{engine}{effort:effort:}',
    mode: '{mode}',
    measured: '{over:measured}',
    'recall@10': '{recallAt10:share}',
    p50: '{p50Ms:ms}',
    p99: '{p99Ms:ms}',
    memory: '{residentBytes:bytes}',
  }),
};

const SEARCHES: Readonly<Record<string, Table>> = {
  rescored: each('rows', {
    'vectors and queries': '{name}',
    'rows × dimension': '{record.rows:count} × {record.dimension}',
    median: '{record.candidatesMedian:count}',
    '95th percentile': '{record.candidatesP95:count}',
    most: '{record.candidatesMax:count}',
  }),
  bulk: each('records', {
    way: '{case}',
    seconds: '{seconds:1}',
    'queries/s': '{queriesPerS:count}',
    'time / engine': '{ratioToEngine:2} ×',
    'of a piece': '{ratios:range}',
  }),
  filters: each('records[evaluateMs]', {
    'rows that pass': '{passing / rows:percent}',
    filter: '`{case}`',
    evaluated: '{evaluateMs:ms}',
    'from the cache': '{cachedMs:ms}',
  }),
  'filtered-searches': each('records[mode=dense][queries=1]', {
    'rows that pass': '{passing / rows:passing}',
    ...across(['dense', 'bm25'], (mode) => ({
      [`${mode}, 1 query`]: `{${filteredSearch(mode, 1)}.medianMs:ms}`,
      [`${mode}, 1 query: gain`]: `{1 / ${filteredSearch(mode, 1)}.shareOfUnfiltered:times}`,
      [`${mode}, 64 queries`]: `{${filteredSearch(mode, 64)}.medianMs:ms}`,
      [`${mode}, 64 queries: gain`]: `{1 / ${filteredSearch(mode, 64)}.shareOfUnfiltered:times}`,
    })),
  }),
  bm25: bm25Searches('pool_wiki_dev', { lucene: 'Lucene', bm25s: 'bm25s', sqlite: 'SQLite' }),
  'bm25-generated': bm25Searches('generated-5000000', { lucene: 'Lucene' }),
  'bm25-size': facts(['what', 'figure'], {
    'passages, JSON lines': '{rows:count}, {corpusBytes:bytes}',
    'build: all; scan; reading and storing; inverted indexes':
      '{build.seconds:count} s; {build.stageMs.scan / 1e3:count} s; {build.stageMs.read / 1e3:count} s; {build.stageMs.words / 1e3:count} s',
    'load average before and after the build': '{build.load.before:1}, {build.load.after:1}',
    'most memory of the build': '{build.peakBytes:bytes}',
    'inverted indexes':
      '{records[indexBytes].indexBytes:bytes} in {build.shards} shards, {records[indexBytes].bitsPerPosting:1} bits a posting',
    'passages in the index': '{build.passageBytes:bytes}',
    'opening the inverted indexes, in the page cache': '{records[indexBytes].openMs:ms}',
    'parts of their files in memory after the searches': '{records[indexBytes].residentBytes:bytes}',
  }),
  'bm25-size-searches': each('records[k]', {
    queries: '{case:questions}',
    k: '{k:count}',
    threads: '{threads}',
    p50: '{p50Ms:ms}',
    p99: '{p99Ms:ms}',
    'queries/s': '{queriesPerS:rate}',
    'postings read': '{postingsReadShare * 100:0} %',
  }),
  'size-figures': facts(['what', 'figure'], {
    'rows, codes, prefilters, passages on disk':
      '{bytes.rows:bytes}, {bytes.codes:bytes}, {bytes.prefilters:bytes}, {bytes.passages:bytes}',
    'import of the rows in place': '{steps.index.seconds:count} s, at most {steps.index.peakBytes:bytes} of memory',
    'of this: passages read and stored; codes and checksums of the rows; prefilters, other checksums and merge':
      '{steps.index.stageMs.read / 1e3:count} s; {steps.index.stageMs.vectors / 1e3:count} s; {steps.index.stageMs.finish / 1e3:count} s',
    'the server is ready, and its first reply: files not in the page cache':
      '{steps.open.cold.readyMs:seconds}, {steps.open.cold.firstMs:seconds}',
    'the same again: files as the first left them in the page cache':
      '{steps.open.warm.readyMs:seconds}, {steps.open.warm.firstMs:seconds}',
    'memory of the server: its own, and that of mapped files':
      '{steps.memory.anonymousBytes:bytes}, {steps.memory.mappedBytes:bytes}',
    'page cache with all memory': '{steps.memory.cached:cached}',
    'page cache in a control group of {steps.prefilter.limitBytes:bytes}': '{steps.prefilter.cached:cached}',
    'queries whose ten passages and scores equal those of a scan of all rows':
      '{steps.memory.checkedQueries} of {steps.memory.checkedQueries}, in both states; the scan took {steps.scan.seconds:count} s for {rows:count} rows',
  }),
  'size-requests': each('steps.memory.requests', {
    'queries in a request': '{queries}',
    'expected by `--plan`': '{/steps.plan.searches[queries=$queries].ms:seconds}',
    'reply, all memory': '{ms:seconds}',
    'read from disk': '{readBytes:bytes}',
    'reply, only the prefilters cached': '{/steps.prefilter.requests[queries=$queries].ms:seconds}',
    'then read from disk': '{/steps.prefilter.requests[queries=$queries].readBytes:bytes}',
  }),
  'gpu-search': each('searches', {
    'queries at once': '{queries:count}',
    'Trawl on the GPU': '{ms:ms}',
    ...across(['float16', 'float32'], (type) => ({
      [`torch, ${type}`]: `{${torch(type)}:ms}`,
      [`torch, ${type}, takes`]: `{${torch(type)} / ms:times}`,
    })),
    'recall of torch in float16': '{/baselines[type=float16][queries=$queries].recall:share}',
    'Trawl on 16 cores': '{cpuMs:ms}',
    'they take': '{cpuMs / ms:times}',
  }),
};

const FUSION_SETS = [
  'sample, MiniLM',
  'sample, bundled',
  'hotpot, MiniLM',
  'hotpot, bundled',
  'hotpot + pool, bundled',
  'SQuAD, MiniLM',
  'SQuAD, bundled',
];

const QUALITY: Readonly<Record<string, Table>> = {
  quality: each('rows', {
    'what is embedded': '{name}',
    queries: '{queries}',
    'recall@5': '{metrics.recall@5:share}',
    'recall@10': '{metrics.recall@10:share}',
    'MRR@10': '{metrics.mrr@10:share}',
  }),
  evaluation: each('rows', {
    set: '{set}',
    system: '{system}',
    questions: '{questions}',
    'recall@10': '{metrics.recall@10:share}{recallInterval:interval:}',
    ...across(['all_gold@10', 'ndcg@10', 'mrr@10'], (metric) => ({ [metric]: `{metrics.${metric}:share}` })),
    p: '{p:significance}',
  }),
  fields: each('rows', {
    search: '{name}',
    options: '{arguments:options}',
    ...across(['recall@1', 'recall@5', 'recall@10'], (metric) => ({ [metric]: `{metrics.${metric}:share}` })),
  }),
  fusion: each(
    'rows',
    {
      ranking: '{system}',
      ...across(FUSION_SETS, (set) => ({
        [set]: `{/rows[set=${set}][system=$system].metrics.recall@10:share}`,
      })),
    },
    { distinct: 'system', boldBest: true },
  ),
  modes: each('records', {
    ranking: '{case}',
    passages: '{passing:count}',
    questions: '{judged:count}',
    'recall@10': '{recallAt10:share}',
    p50: '{p50Ms:ms}',
    p99: '{p99Ms:ms}',
  }),
  precision: each('rows', {
    set: '{set}',
    passages: '{passages}',
    queries: '{queries}',
    questions: '{questions:count}',
    'overlap@10': '{overlap10:4}',
    'recall@10': '{metrics.recall@10:4}',
    'points (95 %)': '{difference.mean:points}{difference:pointsInterval}',
    'better, worse': '{difference.better}, {difference.worse}',
    'nDCG@10': '{metrics.ndcg@10:4}',
    'MRR@10': '{metrics.mrr@10:4}',
  }),
  'triage-errors': triageErrors,
  'triage-models': triageModels,
};

const ENCODERS_AND_BUILDS: Readonly<Record<string, Table>> = {
  families: each('rows[ratioToBaseline=null]', {
    shape: '{shape}',
    tokens: '{tokensPerPassage:count}',
    passage: '{medianMs / /passages:ms}',
    ...across(['float32', 'int8'], (precision) => ({
      [`passage, ${precision}`]: `{${family(precision)}.ratioToBaseline:times}`,
    })),
    'query, p50': '{queryP50Ms:ms}',
    ...across(['float32', 'int8'], (precision) => ({
      [`query, ${precision}`]: `{${family(precision)}.queryRatioToBaseline:times}`,
    })),
  }),
  products: each(
    'records[use=apart]',
    {
      product: '{kind}',
      ...across(['384, 128', '384, 12', '768, 128', '768, 12'], (shape) => {
        const [hidden, tokens] = shape.split(', ');
        return {
          [`${shape} tokens`]: `{/records[use=apart][kind=$kind][hidden=${hidden}][tokens=${tokens}]:gflopPerS}`,
        };
      }),
    },
    { distinct: 'kind' },
  ),
  'encoder-pass': each('passes[pass=int8]', {
    shape: '{shape}',
    tokens: '{tokens}',
    ...across(['float32 graph', 'int8 graph', 'bfloat16'], (pass) => ({
      [pass]: `{/passes[shape=$shape][tokens=$tokens][pass=${pass}].processorMs:ms}`,
    })),
    int8: '{processorMs:ms} ({ratioToInt8Graph:2} ×)',
  }),
  'encoder-cosines': each('cosines', {
    'vectors of all-MiniLM-L6-v2': '{pass}',
    'mean cosine': '{mean:5}',
    smallest: '{least:5}',
  }),
  'lone-query': each('divided', {
    shape: '{shape}',
    pass: '{pass}',
    'one thread, p50': '{oneMs:ms}',
    'two threads, p50': '{twoMs:ms}',
    ratio: '{ratio:2}',
  }),
  builds: each('records', {
    build: '{engine}',
    time: '{seconds:1} s',
    'the encoder alone takes': '{encodeSeconds:1} s',
    'most memory': '{peakMemoryBytes:bytes}',
    written: '{indexBytes:bytes}',
  }),
  prepare: each('rows', {
    program: '{program:program}',
    rule: '`{rule}`',
    output: '`{output}`',
    threads: '{threads}',
    passages: '{passages:count}',
    seconds: '{seconds:1}',
    'passages/s': '{passages / seconds:count}',
  }),
  'gpu-throughput': each('steps[name=throughput].figures', {
    model: '{model:shape}',
    'tokens of a text': '{tokens}',
    'Trawl, batches of 16,384 tokens': '{trawl.16384:count} texts/s',
    'Trawl, batches of 65,536 tokens': '{trawl.65536:count} texts/s',
    'sentence-transformers, best': '{torch:largest} texts/s',
    'Trawl is faster by': '{ratio:times}',
  }),
};

const SERVERS: Readonly<Record<string, Table>> = {
  replicas: facts(['What', 'Figure'], {
    'answers, to requests': '{answers:count} to {requests:count}',
    'failed requests; replies that mixed two indexes': '{failed}; {mixed}',
    'answers of the old index, of the new one': '{ofOld:count}, {ofNew:count}',
    'queries with another answer in the new index': '{changedQueries} of {queries}',
    'answers of the old index to requests sent after the swap': '{oldAfterSwap} of {afterSwap:count}',
    'tries that the client repeated at another server': '{repeatedTries:count}',
    'time of the swap of three servers, with its questions before and after': '{rolloutMs / 1e3:1} s',
  }),
  'cluster-rates': each('rates', {
    'clients and requests': '{name}',
    'queries/s': '{queriesPerS:rate}',
    median: '{medianMs:ms}',
    p99: '{p99Ms:ms}',
    slowest: '{slowestMs:ms}',
    'load average': '{load:1}',
  }),
  'cluster-events': each('events', {
    fault: '{name}',
    'right answers': '{answers:count}',
    'of them during the fault': '{answersMeanwhile:count}',
    wrong: '{wrong}',
    'refused (503)': '{refused:count}',
    'last 503 after': '{refusedUntilMs / 1e3:1} s',
    'longest without an answer': '{longestSilenceMs / 1e3:1} s',
    'of all dialects: right, 503, wrong': '{dialects.answers:count}, {dialects.refused:count}, {dialects.wrong:count}',
    'load average': '{load:1}',
  }),
  'milvus-memory': memory('etcd', 'Kafka', 'all other processes of Milvus', 'query node 1', 'query node 2'),
  'opensearch-memory': memory('node 1', 'node 2', 'node 3'),
  'milvus-size': each('sizes', {
    rows: '{rows:count}',
    'stored in': '{storedS:0} s',
    'memory before loading': '{beforeLoadingBytes:bytes}',
    'after the searches': '{afterSearchesBytes:bytes}',
    '42 candidates, median (p95)': '{candidates.medianMs:ms} ({candidates.p95Ms:ms})',
    'ten hits proved, median (p95)': '{proved.medianMs:ms} ({proved.p95Ms:ms})',
    'load average': '{load:1}',
  }),
  trials: each('results', { trial: '{name}', outcome: '{outcome}', counted: '{.:counted}' }),
  soak: each('rows', { what: '{0}', outcome: '{1}', figures: '{2}' }),
};

/** Tables of the documents by the names in their markers. */
export const TABLES: Readonly<Record<string, Table>> = {
  ...REPORT,
  ...SEARCHES,
  ...QUALITY,
  ...ENCODERS_AND_BUILDS,
  ...SERVERS,
  once: onceTable,
};
