import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { installBaselines } from '../../bench/baselines.ts';
import { BASELINES, type BaselineName } from '../../bench/bench-engine.ts';
import { benchFlat } from '../../bench/bench-flat.ts';
import { benchIndex, indexReport } from '../../bench/bench-index.ts';
import { flatReport } from '../../bench/report.ts';
import { availableCores } from '../../src/embedding/available-cores.ts';
import { TrawlError } from '../../src/errors.ts';
import { VECTOR_DTYPES, type VectorDtype } from '../../src/vector-index/vector-segments.ts';
import { defineCommand, EXIT } from '../command.ts';

/** Options that describe synthetic vectors; a file says these things itself. */
const SYNTHETIC_OPTIONS = ['rows', 'dimension', 'dtype', 'like'] as const;

export const benchCommand = defineCommand({
  name: 'bench',
  summary: 'measure the search beside faiss, numpy and usearch, and the building of an index',
  description:
    '`trawl bench flat` times exact top-k over synthetic vectors with the distribution of real ones, or over a FAISS file, ' +
    'in turns with the baselines: the same rows, queries and threads, a median of several runs after a warm-up, the answers ' +
    'compared. `trawl bench baselines` makes their Python environment, once. A baseline that is not there, or does not fit ' +
    'into memory, is left out with a word. `trawl bench index` builds an index of --rows passages of 100 words, or of --corpus, ' +
    'with vectors that cost nothing, or with --model beside the encoder alone. bench/README.md defines the figures.',
  positionals: {
    usage: '<case>',
    help: { case: 'flat: the search. index: the building. baselines: install faiss, numpy and usearch.' },
    min: 1,
    max: 1,
  },
  options: {
    rows: { kind: 'integer', default: 100_000, min: 1, help: 'Vectors to search, passages to index.' },
    dimension: { kind: 'integer', default: 768, min: 1, max: 131_072, help: 'Values of a vector.' },
    dtype: {
      kind: 'choice',
      choices: VECTOR_DTYPES,
      default: 'float32',
      help: 'How the rows are stored. float16 takes half the disk; the baselines hold them as float32.',
    },
    queries: { kind: 'string', value: 'N,N,…', default: '1,16,64,256,512', help: 'Queries searched at once, in turn.' },
    k: { kind: 'integer', default: 10, min: 1, help: 'Results per query.' },
    against: { kind: 'string', value: 'NAME,…', default: BASELINES.join(','), help: 'Baselines, or none.' },
    threads: { kind: 'integer', min: 1, help: 'Threads of every engine. Default: the cores of this process.' },
    runs: { kind: 'integer', default: 5, min: 1, help: 'Timed searches of each. Fewer than 5 are for a look only.' },
    vectors: {
      kind: 'string',
      value: 'FILE',
      help: 'Search this FAISS file (IxFI, or IxSQ of float16) in place of synthetic vectors. Queries are rows with noise.',
    },
    'query-vectors': { kind: 'string', value: 'FILE', help: 'Queries to take: .npy, float32, queries × dimension.' },
    like: {
      kind: 'string',
      value: 'FILE',
      help:
        'FAISS file whose mean and covariance synthetic vectors have. Default: 1,000 vectors of E5 beside the checkout ' +
        '(../shared/data) where they are and --dimension is 768, else a built-in spectrum.',
    },
    seed: { kind: 'integer', default: 1, min: 0, max: 2 ** 32 - 1, help: 'Of rows and queries.' },
    cache: {
      kind: 'string',
      value: 'DIR',
      help: 'Keeps vectors, codes and the Python environment for the next run. Default: .cache/trawl of your home folder.',
    },
    python: {
      kind: 'string',
      value: 'FILE',
      help: 'Python to use, in place of the environment that `baselines` makes.',
    },
    'bandwidth-gb': {
      kind: 'string',
      value: 'GB/S',
      help: 'Reading speed of the memory, 10^9 bytes a second, measured elsewhere; for the record and the roofline.',
    },
    corpus: { kind: 'list', value: 'FILE', help: 'index: passages to take.' },
    model: { kind: 'string', value: 'NAME|DIR', help: 'index: the encoder, in place of one that costs nothing.' },
    out: { kind: 'string', value: 'FILE', help: 'Also write environment, records and what was left out, as JSON.' },
  },
  examples: [
    'trawl bench baselines',
    'trawl bench flat --rows 1000000 --queries 1,16,64,256,512 --against faiss,numpy,usearch --json',
    'trawl bench index --rows 300000 --json',
    'trawl bench flat --vectors indexes/wiki18/vectors.faiss --against none',
  ],
  async run({ options, positionals, given, signal, out, note }) {
    const cache = options.cache ?? join(homedir(), '.cache', 'trawl');
    const [name] = positionals;
    if (name === 'baselines') {
      const python = await installBaselines(cache, { python: options.python ?? 'python3', signal, note });
      out(options.json ? JSON.stringify({ python }) : python);
      return EXIT.ok;
    }
    if (name === 'index') {
      const scratch = await mkdtemp(join(options.cache ?? tmpdir(), 'trawl-bench-'));
      try {
        const { rows, dimension, model, corpus, seed } = options;
        const threads = options.threads ?? availableCores();
        const result = await benchIndex({ corpus, rows, dimension, model, threads, seed, scratch, signal, note });
        if (options.out !== undefined) await writeFile(options.out, `${JSON.stringify(result, null, 2)}\n`);
        out(options.json ? JSON.stringify(result.records) : indexReport(result.records, result.environment));
        return EXIT.ok;
      } finally {
        await rm(scratch, { recursive: true, force: true });
      }
    }
    if (name !== 'flat') {
      throw new TrawlError('USAGE', `There is no case ${JSON.stringify(name)}; there are flat, index and baselines.`);
    }
    const clash = SYNTHETIC_OPTIONS.find((option) => given.has(option));
    if (options.vectors !== undefined && clash !== undefined) {
      throw new TrawlError(
        'USAGE',
        `--${clash} describes synthetic vectors; --vectors takes them from a file. Leave one out.`,
      );
    }
    const scratch = await mkdtemp(join(tmpdir(), 'trawl-bench-'));
    try {
      const result = await benchFlat({
        vectors:
          options.vectors === undefined
            ? {
                kind: 'synthetic',
                rows: options.rows,
                dimension: options.dimension,
                dtype: options.dtype as VectorDtype,
                like: options.like,
              }
            : { kind: 'file', path: options.vectors },
        queryVectors: options['query-vectors'],
        queryCounts: parseCounts(options.queries),
        k: options.k,
        against: parseBaselines(options.against),
        threads: options.threads ?? availableCores(),
        runs: options.runs,
        seed: options.seed,
        cache,
        scratch,
        python: options.python,
        bandwidthGbPerS: parseBandwidth(options['bandwidth-gb']),
        signal,
        note,
      });
      if (options.out !== undefined) await writeFile(options.out, `${JSON.stringify(result, null, 2)}\n`);
      out(options.json ? JSON.stringify(result.records) : flatReport(result.records, result.environment));
      return EXIT.ok;
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  },
});

function parseCounts(text: string): number[] {
  const counts = text.split(',').map((part) => (/^\s*\d+\s*$/.test(part) ? Number(part) : Number.NaN));
  if (counts.every((count) => count >= 1 && Number.isSafeInteger(count))) return [...new Set(counts)];
  throw new TrawlError(
    'USAGE',
    `--queries is ${JSON.stringify(text)}; it has to be whole numbers from 1, such as 1,16,64.`,
  );
}

function parseBaselines(text: string): BaselineName[] {
  if (text === 'none') return [];
  return [...new Set(text.split(',').map((part) => part.trim()))].map((part) => {
    const known = BASELINES.find((name) => name === part);
    if (known !== undefined) return known;
    throw new TrawlError(
      'USAGE',
      `--against names ${JSON.stringify(part)}; there are ${BASELINES.join(', ')}, or none.`,
    );
  });
}

function parseBandwidth(text: string | undefined): number | null {
  if (text === undefined) return null;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : 0;
  if (value > 0) return value;
  throw new TrawlError(
    'USAGE',
    `--bandwidth-gb is ${JSON.stringify(text)}; it has to be a number above 0, such as 36.5.`,
  );
}
