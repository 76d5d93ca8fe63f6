import { TrawlError } from '../../src/errors.ts';

/** The command line of another retrieval server, translated to what to index and how to serve it. */
export type LaunchLine = DenseLine | Bm25Line;

interface CommonLine {
  readonly corpus: string;
  /** Folder of the index; undefined for the default. */
  readonly out: string | undefined;
  /** Options for `trawl serve`. */
  readonly serveOptions: readonly string[];
  /** Sentences for the user about flags that are ignored or have another meaning. */
  readonly remarks: readonly string[];
}

/** Vectors of an encoder. Their index is by default beside them. */
export interface DenseLine extends CommonLine {
  readonly mode: 'dense';
  /** Path of the vectors. */
  readonly vectors: string;
  /** A hub id, the path of a checkpoint or a model folder, or the name of a model. */
  readonly model: string;
  /** Token limit of queries, unless the model's limit is lower. */
  readonly maxQueryTokens: number;
  /** Further options for `trawl import`. */
  readonly importOptions: readonly string[];
}

/** Words of the corpus. Their index is by default beside the corpus. */
export interface Bm25Line extends CommonLine {
  readonly mode: 'bm25';
}

/** Defaults of Search-R1's `retrieval_server.py`, from its argument parser and its Config. */
const DEFAULT_NAME = 'e5';
const DEFAULT_MODEL = 'intfloat/e5-base-v2';
const MAX_QUERY_TOKENS = 256;

const BGE_INSTRUCTION = 'Represent this sentence for searching relevant passages: ';

interface Flag {
  readonly takesValue: boolean;
  /** Printed if the flag is given. */
  readonly remark?: string;
  /** The feature that the flag requests and that Trawl does not have. Without it answers would differ, so the flag is refused. */
  readonly refused?: string;
}

/** Flags of the servers of Search-R1, verl, Agentic-R, AutoRefine, ParallelSearch, ASearcher and RLinf. */
const FLAGS: Readonly<Record<string, Flag>> = {
  index_path: { takesValue: true },
  corpus_path: { takesValue: true },
  retriever_name: { takesValue: true },
  retriever_model: { takesValue: true },
  out: { takesValue: true },
  faiss_gpu: {
    takesValue: false,
    remark:
      '--faiss_gpu is ignored: the exact search runs on the CPU, over codes of a quarter of the size of the vectors.',
  },
  pages_path: {
    takesValue: true,
    remark: '--pages_path is ignored: POST /access composes pages from the passages of the corpus.',
  },
  'save-address-to': { takesValue: true },
  retrieval_topk: { takesValue: true, refused: 'reranking' },
  reranking_topk: { takesValue: true, refused: 'reranking' },
  reranker_model: { takesValue: true, refused: 'reranking' },
  reranker_batch_size: { takesValue: true, refused: 'reranking' },
  qdrant_url: { takesValue: true, refused: 'searching in Qdrant' },
  qdrant_collection_name: { takesValue: true, refused: 'searching in Qdrant' },
  qdrant_search_param: { takesValue: true, refused: 'searching in Qdrant' },
};

export const LAUNCH_FLAGS: readonly string[] = Object.keys(FLAGS);

/** Whether the arguments of `trawl serve` are those of another server, which have underscores. */
export function isLaunchLine(argv: readonly string[]): boolean {
  return argv.some((argument) => /^--(?:index_path|corpus_path|retriever_name|retriever_model)(?:=|$)/.test(argument));
}

/**
 * Translates the arguments of `retrieval_server.py`. Passes options of `trawl serve` on.
 *
 * @throws TrawlError USAGE for a missing or unknown flag, NOT_SUPPORTED for reranking and Qdrant.
 */
export function translateLaunchLine(argv: readonly string[]): LaunchLine {
  const { values, remarks, passedOn } = readFlags(argv);
  const name = (values.get('retriever_name') ?? DEFAULT_NAME).toLowerCase();
  const corpus = required(values, 'corpus_path', 'the corpus that the index was made from');
  if (!passedOn.some((argument) => /^--host(?:=|$)/.test(argument))) {
    remarks.push(
      'The server listens only on this machine; the original server listens on every network, as with --host 0.0.0.0.',
    );
  }
  const common = {
    corpus,
    out: values.get('out'),
    serveOptions: [...passedOn, ...asearcherOptions(values, passedOn)],
  };
  if (name === 'bm25') {
    const lucene = values.get('index_path');
    const hasOrder = passedOn.some((argument) => /^--bm25-order(?:=|$)/.test(argument));
    return {
      ...common,
      // The original searches with Pyserini.
      serveOptions: [...common.serveOptions, ...(hasOrder ? [] : ['--bm25-order', 'pyserini'])],
      mode: 'bm25',
      remarks: [
        ...remarks,
        ...(lucene === undefined
          ? []
          : [`--index_path ${lucene} is not read: Trawl makes its own index of words from the corpus, once.`]),
      ],
    };
  }
  const vectors = required(values, 'index_path', 'the FAISS index');
  const { options, remark } = encoding(name);
  return {
    ...common,
    mode: 'dense',
    vectors,
    model: values.get('retriever_model') ?? DEFAULT_MODEL,
    maxQueryTokens: MAX_QUERY_TOKENS,
    importOptions: options,
    remarks: remark === undefined ? remarks : [...remarks, remark],
  };
}

/** Options for the flags of ASearcher's and RLinf's server, whose clients need a `url` in every document. */
function asearcherOptions(values: ReadonlyMap<string, string>, passedOn: readonly string[]): string[] {
  const addressFolder = values.get('save-address-to');
  if (addressFolder === undefined && !values.has('pages_path')) return [];
  const named = passedOn.some((argument) => /^--dialect(?:=|$)/.test(argument));
  return [
    ...(named ? [] : ['--dialect=asearcher']),
    ...(addressFolder === undefined ? [] : [`--address-dir=${addressFolder}`]),
  ];
}

interface ReadFlags {
  readonly values: ReadonlyMap<string, string>;
  readonly remarks: string[];
  /** The remaining arguments in their order: options of `trawl serve` and their values. */
  readonly passedOn: readonly string[];
}

function readFlags(argv: readonly string[]): ReadFlags {
  const values = new Map<string, string>();
  const remarks: string[] = [];
  const passedOn: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i]!;
    const [, name, inline] = /^--([\w-]+)(?:=([\s\S]*))?$/.exec(argument) ?? [];
    const flag = name !== undefined && Object.hasOwn(FLAGS, name) ? FLAGS[name] : undefined;
    if (name === undefined || flag === undefined) {
      if (name?.includes('_') === true) throw unknownFlag(name);
      passedOn.push(argument);
      continue;
    }
    if (flag.refused !== undefined) {
      throw new TrawlError('NOT_SUPPORTED', `--${name}: ${flag.refused} is not supported. Omit the flag.`);
    }
    if (!flag.takesValue && inline !== undefined) throw new TrawlError('USAGE', `--${name} takes no value.`);
    const value = flag.takesValue ? (inline ?? argv[++i]) : '';
    if (value === undefined || (inline === undefined && value.startsWith('--'))) {
      throw new TrawlError('USAGE', `--${name} needs a value.`);
    }
    // The last value of a repeated flag is used, as in argparse.
    values.set(name, value);
    if (flag.remark !== undefined && !remarks.includes(flag.remark)) remarks.push(flag.remark);
  }
  return { values, remarks, passedOn };
}

function required(values: ReadonlyMap<string, string>, name: string, meaning: string): string {
  const value = values.get(name);
  if (value !== undefined && value !== '') return value;
  throw new TrawlError('USAGE', `--${name} is missing: ${meaning}.`);
}

function unknownFlag(name: string): TrawlError {
  const known = Object.keys(FLAGS)
    .filter((each) => FLAGS[each]!.refused === undefined)
    .map((each) => `--${each}`)
    .join(', ');
  return new TrawlError('USAGE', `Unknown flag --${name}. Expected one of ${known}, or an option of trawl serve.`);
}

/**
 * Options for embedding queries like Search-R1's server: parts of `--retriever_name` select the prefixes and whether vectors are
 * normalised. The original server pools every model by the mean, but its index builder pools BGE by the first token, so that
 * queries and passages of BGE do not match. Trawl pools both by the first token.
 */
function encoding(name: string): { options: string[]; remark: string | undefined } {
  const e5 = name.includes('e5');
  const bge = name.includes('bge');
  const query = `${bge ? BGE_INSTRUCTION : ''}${e5 ? 'query: ' : ''}`;
  return {
    options: [
      `--query-prefix=${query}`,
      `--passage-prefix=${e5 ? 'passage: ' : ''}`,
      `--pooling=${bge ? 'cls' : 'mean'}`,
      `--normalize=${name.includes('dpr') ? 'no' : 'yes'}`,
    ],
    remark: bge
      ? 'Queries are pooled by their first token, like the passages of BGE; the original server pools them by the mean.'
      : undefined,
  };
}
