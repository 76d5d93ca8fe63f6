import { TrawlError, usageError } from '../../src/base/errors.ts';

/** The command line of another retrieval server, translated to what to index and how to serve it. */
export type LaunchLine = DenseLine | Bm25Line | RerankLine;

interface ServedLine {
  /** A hub id, the path of a checkpoint or a model folder, or the name of a cross-encoder; undefined without reranking. */
  readonly rerankModel: string | undefined;
  /** Options for `trawl serve`, and for a rerank server the index. */
  readonly serveOptions: readonly string[];
  /** Sentences for the user about flags that are ignored or have another meaning. */
  readonly remarks: readonly string[];
}

interface CommonLine extends ServedLine {
  readonly corpus: string;
  /** Folder of the index; undefined for the default. */
  readonly out: string | undefined;
}

/** A server that only reranks what requests send. Trawl's is one over an index, which its options name. */
interface RerankLine extends ServedLine {
  readonly mode: 'rerank';
  readonly rerankModel: string;
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

/** Defaults of Search-R1's servers that rerank (`retrieval_rerank_server.py` and `rerank_server.py`). */
const DEFAULT_RERANKER = 'cross-encoder/ms-marco-MiniLM-L12-v2';
const RERANKED = { depth: '10', topk: '3' };
const RERANK_PORT = '6980';
/** The only kind of reranker that Search-R1 has. */
const RERANKER_TYPE = 'sentence_transformer';

const BGE_INSTRUCTION = 'Represent this sentence for searching relevant passages: ';

interface Flag {
  /** Default: true. */
  readonly takesValue?: boolean;
  /** Printed if the flag is given. */
  readonly remark?: string;
  /** The feature that the flag requests and that Trawl does not have. Without it answers would differ, so the flag is refused. */
  readonly refused?: string;
}

/**
 * Flags of the servers of Search-R1, verl, Agentic-R, AutoRefine, ParallelSearch, ASearcher and RLinf, and of agent-lightning, which
 * writes them with hyphens.
 */
const FLAGS: Readonly<Record<string, Flag>> = {
  index_path: {},
  corpus_path: {},
  retriever_name: {},
  retriever_model: {},
  out: {},
  faiss_gpu: {
    takesValue: false,
    remark:
      '--faiss_gpu is ignored: the exact search runs on the CPU, over codes of a quarter of the size of the vectors.',
  },
  query_max_length: {},
  batch_size: { remark: '--batch-size is ignored: Trawl chooses the size of its batches while it runs.' },
  use_fp16: {
    takesValue: false,
    remark: '--use-fp16 is ignored: the model has the precision of its index; --precision sets another.',
  },
  pages_path: { remark: '--pages_path is ignored: POST /access composes pages from the passages of the corpus.' },
  'save-address-to': {},
  retrieval_topk: {},
  reranking_topk: {},
  reranker_model: {},
  reranker_batch_size: {
    remark: '--reranker_batch_size is ignored: Trawl chooses the size of its batches while it runs.',
  },
  rerank_model_name_or_path: {},
  rerank_topk: {},
  reranker_type: {},
  max_length: { remark: "--max_length is ignored, as in the original: pairs are truncated to the model's limit." },
  qdrant_url: { refused: 'searching in Qdrant' },
  qdrant_collection_name: { refused: 'searching in Qdrant' },
  qdrant_search_param: { refused: 'searching in Qdrant' },
};

/** The flags in both spellings. @internal Exported for tests. */
export const LAUNCH_FLAGS: readonly string[] = Object.keys(FLAGS).flatMap((flag) => [flag, hyphenated(flag)]);

/** Flags of which one is enough to recognise a server's command line. */
const RECOGNISED = ['index_path', 'corpus_path', 'retriever_name', 'retriever_model'];

/** Whether another server's arguments were given to `trawl serve`. */
export function isLaunchLine(argv: readonly string[]): boolean {
  return hasFlag(argv, ...RECOGNISED) || isRerankServers(argv) || isAgentLightnings(argv);
}

/** Whether the arguments are for Search-R1's rerank server. */
function isRerankServers(argv: readonly string[]): boolean {
  return hasFlag(argv, 'rerank_model_name_or_path', 'rerank_topk', 'reranker_type');
}

function isAgentLightnings(argv: readonly string[]): boolean {
  return hasFlag(argv, ...RECOGNISED.map(hyphenated));
}

function hasFlag(argv: readonly string[], ...flags: readonly string[]): boolean {
  return argv.some((argument) => flags.some((flag) => argument === `--${flag}` || argument.startsWith(`--${flag}=`)));
}

function hyphenated(flag: string): string {
  return flag.replaceAll('_', '-');
}

/**
 * Translates the arguments of `retrieval_server.py`, `retrieval_rerank_server.py` and `rerank_server.py`. Passes options of `trawl
 * serve` on.
 *
 * @throws TrawlError USAGE for a missing or unknown flag, NOT_SUPPORTED for Qdrant and another kind of reranker.
 */
export function translateLaunchLine(argv: readonly string[]): LaunchLine {
  const flags = readFlags(argv);
  if (isRerankServers(argv)) return rerankLine(flags);
  const { values, remarks, passedOn } = flags;
  const spelling = isAgentLightnings(argv) ? hyphenated : (flag: string) => flag;
  const name = (values.get('retriever_name') ?? DEFAULT_NAME).toLowerCase();
  const corpus = required(values, 'corpus_path', spelling, 'the corpus that the index was made from');
  if (!hasFlag(passedOn, 'host')) {
    remarks.push(
      'The server listens only on this machine; the original server listens on every network, as with --host 0.0.0.0.',
    );
  }
  const serveOptions = [
    ...withoutAutoDevice(passedOn),
    ...rerankOptions(flags),
    ...dialectOptions(flags, isAgentLightnings(argv)),
  ];
  const rerankModel = reranks(values) ? (values.get('reranker_model') ?? DEFAULT_RERANKER) : undefined;
  const common = { corpus, out: values.get('out'), rerankModel, serveOptions, remarks };
  const index = values.get('index_path');
  if (name === 'bm25') {
    // The original searches with Pyserini.
    if (!hasFlag(passedOn, 'bm25-order')) serveOptions.push('--bm25-order', 'pyserini');
    if (index !== undefined) {
      remarks.push(
        `--${spelling('index_path')} ${index} is not read: Trawl makes its own index of words from the corpus, once.`,
      );
    }
    return { ...common, mode: 'bm25' };
  }
  if (name.includes('bge')) {
    remarks.push(
      'Queries are pooled by their first token, like the passages of BGE; the original server pools them by the mean.',
    );
  }
  return {
    ...common,
    mode: 'dense',
    vectors: required(values, 'index_path', spelling, 'the FAISS index'),
    model: values.get('retriever_model') ?? DEFAULT_MODEL,
    maxQueryTokens: queryTokens(values),
    importOptions: encodingOptions(name),
  };
}

/** Whether one of the flags is given that only `retrieval_rerank_server.py` has. That server reranks every search. */
function reranks(values: ReadFlags['values']): boolean {
  return ['retrieval_topk', 'reranking_topk', 'reranker_model', 'reranker_batch_size'].some((flag) => values.has(flag));
}

/** How many passages are reranked and returned. The original ignores both flags, because each request has its own numbers. */
function rerankOptions({ values, passedOn }: ReadFlags): string[] {
  if (!reranks(values)) return [];
  const depth = `--rerank-depth=${values.get('retrieval_topk') ?? RERANKED.depth}`;
  return hasFlag(passedOn, 'topk') ? [depth] : [depth, `--topk=${values.get('reranking_topk') ?? RERANKED.topk}`];
}

function rerankLine({ values, remarks, passedOn }: ReadFlags): RerankLine {
  const type = values.get('reranker_type') ?? RERANKER_TYPE;
  if (type !== RERANKER_TYPE) {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `--reranker_type is ${type}, which is not supported; expected ${RERANKER_TYPE}.`,
    );
  }
  const topk = values.get('rerank_topk');
  const port = hasFlag(passedOn, 'port') ? [] : ['--port', RERANK_PORT];
  return {
    mode: 'rerank',
    rerankModel: values.get('rerank_model_name_or_path') ?? DEFAULT_RERANKER,
    serveOptions: [...passedOn, ...port, ...(topk === undefined ? [] : [`--topk=${topk}`])],
    remarks,
  };
}

/**
 * Options for clients that need a dialect by name: ASearcher's and RLinf's need a `url` in every document, and agent-lightning's get
 * scores by default.
 */
function dialectOptions({ values, passedOn }: ReadFlags, agentLightning: boolean): string[] {
  const addressFolder = values.get('save-address-to');
  const asearcher = addressFolder !== undefined || values.has('pages_path');
  const dialect = asearcher ? 'asearcher' : agentLightning ? 'agent-lightning' : undefined;
  return [
    ...(dialect === undefined || hasFlag(passedOn, 'dialect') ? [] : [`--dialect=${dialect}`]),
    ...(addressFolder === undefined ? [] : [`--address-dir=${addressFolder}`]),
  ];
}

/** agent-lightning's `--device auto` chooses a GPU if there is one; Trawl embeds on the CPU unless `--device` names a GPU. */
function withoutAutoDevice(passedOn: readonly string[]): string[] {
  return passedOn.filter(
    (argument, i) =>
      argument !== '--device=auto' &&
      !(argument === '--device' && passedOn[i + 1] === 'auto') &&
      !(argument === 'auto' && passedOn[i - 1] === '--device'),
  );
}

function queryTokens(values: ReadFlags['values']): number {
  const given = values.get('query_max_length');
  if (given === undefined) return MAX_QUERY_TOKENS;
  if (/^[1-9]\d{0,5}$/.test(given)) return Number(given);
  throw usageError(`--query-max-length is ${given}; expected a number of tokens from 1 to 999999.`);
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
    const known = Object.keys(FLAGS).find((each) => each === name || hyphenated(each) === name);
    const flag = known === undefined ? undefined : FLAGS[known];
    if (name === undefined || known === undefined || flag === undefined) {
      if (name?.includes('_') === true) throw unknownFlag(name);
      passedOn.push(argument);
      continue;
    }
    if (flag.refused !== undefined) {
      throw new TrawlError('NOT_SUPPORTED', `--${name}: ${flag.refused} is not supported. Omit the flag.`);
    }
    const { takesValue = true } = flag;
    if (!takesValue && inline !== undefined) throw usageError(`--${name} takes no value.`);
    const value = takesValue ? (inline ?? argv[++i]) : '';
    if (value === undefined || (inline === undefined && value.startsWith('--'))) {
      throw usageError(`--${name} needs a value.`);
    }
    // The last value of a repeated flag is used, as in argparse.
    values.set(known, value);
    if (flag.remark !== undefined && !remarks.includes(flag.remark)) remarks.push(flag.remark);
  }
  return { values, remarks, passedOn };
}

function required(values: ReadFlags['values'], name: string, spelling: (flag: string) => string, meaning: string) {
  const value = values.get(name);
  if (value !== undefined && value !== '') return value;
  throw usageError(`--${spelling(name)} is missing: ${meaning}.`);
}

function unknownFlag(name: string): TrawlError {
  const known = Object.keys(FLAGS)
    .filter((each) => FLAGS[each]!.refused === undefined)
    .map((each) => `--${each}`)
    .join(', ');
  return usageError(`Unknown flag --${name}. Expected one of ${known}, or an option of trawl serve.`);
}

/**
 * Options for embedding queries like Search-R1's server: parts of `--retriever_name` select the prefixes and whether vectors are
 * normalised. The original server pools every model by the mean, but its index builder pools BGE by the first token, so that
 * queries and passages of BGE do not match. Trawl pools both by the first token.
 */
function encodingOptions(name: string): string[] {
  const [e5, bge] = [name.includes('e5'), name.includes('bge')];
  return [
    `--query-prefix=${bge ? BGE_INSTRUCTION : ''}${e5 ? 'query: ' : ''}`,
    `--passage-prefix=${e5 ? 'passage: ' : ''}`,
    `--pooling=${bge ? 'cls' : 'mean'}`,
    `--normalize=${name.includes('dpr') ? 'no' : 'yes'}`,
  ];
}
