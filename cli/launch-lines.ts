import { TrawlError } from '../src/errors.ts';

/**
 * The command line of another project's retrieval server in our own words: what has to be imported, with which model, and
 * how it is served.
 */
export interface LaunchLine {
  /** Vectors: the file that was named. */
  readonly vectors: string;
  readonly corpus: string;
  /** A hub id, a checkpoint, a model folder or a model's name. */
  readonly model: string;
  /** Where the index goes; undefined for beside the vectors. */
  readonly out: string | undefined;
  /** Longest query in tokens, where the model takes as many. */
  readonly maxQueryTokens: number;
  /** Further options for `trawl import`. */
  readonly importOptions: readonly string[];
  /** Options for `trawl serve`. */
  readonly serveOptions: readonly string[];
  /** What a person should know of flags that mean something else here, or nothing. */
  readonly remarks: readonly string[];
}

/** What the scripts' own defaults are: argparse in `retrieval_server.py` of Search-R1, and the fixed values of its Config. */
const DEFAULT_NAME = 'e5';
const DEFAULT_MODEL = 'intfloat/e5-base-v2';
const MAX_QUERY_TOKENS = 256;

const BGE_INSTRUCTION = 'Represent this sentence for searching relevant passages: ';

interface Flag {
  readonly takesValue: boolean;
  /** Said where the flag is given. Undefined: the flag is understood. */
  readonly remark?: string;
  /** A function that would change the answers and is not there. */
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
      '--faiss_gpu means nothing here: the search runs on the CPU, exact, over codes a quarter the size of the vectors.',
  },
  pages_path: {
    takesValue: true,
    remark: '--pages_path is not read: POST /access makes pages of the corpus’s passages.',
  },
  'save-address-to': { takesValue: true },
  retrieval_topk: { takesValue: true, refused: 'retrieving and then reranking' },
  reranking_topk: { takesValue: true, refused: 'reranking' },
  reranker_model: { takesValue: true, refused: 'reranking' },
  reranker_batch_size: { takesValue: true, refused: 'reranking' },
  qdrant_url: { takesValue: true, refused: 'vectors in Qdrant' },
  qdrant_collection_name: { takesValue: true, refused: 'vectors in Qdrant' },
  qdrant_search_param: { takesValue: true, refused: 'vectors in Qdrant' },
};

export const LAUNCH_FLAGS: readonly string[] = Object.keys(FLAGS);

/** Whether `trawl serve` was given another server's flags: they have underscores, ours never. */
export function isLaunchLine(argv: readonly string[]): boolean {
  return argv.some((argument) => /^--(?:index_path|corpus_path|retriever_name|retriever_model)(?:=|$)/.test(argument));
}

/**
 * Reads the arguments behind `retrieval_server.py`, and any option of `trawl serve` among them, which is passed on.
 *
 * @throws TrawlError USAGE for what is missing or unknown, NOT_SUPPORTED for BM25, reranking and Qdrant.
 */
export function translateLaunchLine(argv: readonly string[]): LaunchLine {
  const { values, remarks, passedOn } = readFlags(argv);
  const vectors = required(values, 'index_path', 'the FAISS index');
  const corpus = required(values, 'corpus_path', 'the corpus that the index was made from');
  const name = (values.get('retriever_name') ?? DEFAULT_NAME).toLowerCase();
  if (name === 'bm25') throw new TrawlError('NOT_SUPPORTED', '--retriever_name bm25: there is no BM25 here.');
  const { options, remark } = encoding(name);
  if (!passedOn.some((argument) => /^--host(?:=|$)/.test(argument))) {
    remarks.push('Listens on this machine alone, where the original listens on every network: --host 0.0.0.0 does so.');
  }
  return {
    vectors,
    corpus,
    model: values.get('retriever_model') ?? DEFAULT_MODEL,
    out: values.get('out'),
    maxQueryTokens: MAX_QUERY_TOKENS,
    importOptions: options,
    serveOptions: [...passedOn, ...asearcherOptions(values, passedOn)],
    remarks: remark === undefined ? remarks : [...remarks, remark],
  };
}

/** Two flags tell ASearcher's and RLinf's server from the others; their clients insist on a `url` in every document. */
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
  /** Everything else, in its order: options of `trawl serve` with their values. */
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
      throw new TrawlError('NOT_SUPPORTED', `--${name}: there is no ${flag.refused} behind such a command line here.`);
    }
    if (!flag.takesValue && inline !== undefined) throw new TrawlError('USAGE', `--${name} takes no value.`);
    const value = flag.takesValue ? (inline ?? argv[++i]) : '';
    if (value === undefined || (inline === undefined && value.startsWith('--'))) {
      throw new TrawlError('USAGE', `--${name} needs a value.`);
    }
    // As argparse has it, the last one counts.
    values.set(name, value);
    if (flag.remark !== undefined && !remarks.includes(flag.remark)) remarks.push(flag.remark);
  }
  return { values, remarks, passedOn };
}

function required(values: ReadonlyMap<string, string>, name: string, what: string): string {
  const value = values.get(name);
  if (value !== undefined && value !== '') return value;
  throw new TrawlError('USAGE', `--${name} is missing: ${what}.`);
}

function unknownFlag(name: string): TrawlError {
  const known = Object.keys(FLAGS)
    .filter((each) => FLAGS[each]!.refused === undefined)
    .map((each) => `--${each}`)
    .join(', ');
  return new TrawlError('USAGE', `Unknown flag --${name}. Understood are ${known}, and the options of trawl serve.`);
}

/**
 * How Search-R1's server embeds queries, which it decides by parts of `--retriever_name`: prefixes, whether vectors are
 * divided by their length. It pools every model by mean; its index builder pools BGE by its first token, so
 * queries and passages of BGE do not fit there, which is not copied.
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
      ? 'Queries are pooled by their first token, as BGE’s passages were; the original server takes the mean.'
      : undefined,
  };
}
