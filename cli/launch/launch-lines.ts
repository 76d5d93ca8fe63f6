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
  readonly takesValue: boolean;
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
  query_max_length: { takesValue: true },
  batch_size: {
    takesValue: true,
    remark: '--batch-size is ignored: Trawl chooses the size of its batches while it runs.',
  },
  use_fp16: {
    takesValue: false,
    remark: '--use-fp16 is ignored: the precision of the model is that of its index; --precision sets another.',
  },
  pages_path: {
    takesValue: true,
    remark: '--pages_path is ignored: POST /access composes pages from the passages of the corpus.',
  },
  'save-address-to': { takesValue: true },
  retrieval_topk: { takesValue: true },
  reranking_topk: { takesValue: true },
  reranker_model: { takesValue: true },
  reranker_batch_size: {
    takesValue: true,
    remark: '--reranker_batch_size is ignored: Trawl chooses the size of its batches while it runs.',
  },
  rerank_model_name_or_path: { takesValue: true },
  rerank_topk: { takesValue: true },
  reranker_type: { takesValue: true },
  max_length: {
    takesValue: true,
    remark: "--max_length is ignored, as in the original: pairs are truncated to the model's limit.",
  },
  qdrant_url: { takesValue: true, refused: 'searching in Qdrant' },
  qdrant_collection_name: { takesValue: true, refused: 'searching in Qdrant' },
  qdrant_search_param: { takesValue: true, refused: 'searching in Qdrant' },
};

/** The flags in both spellings. @internal Exported for tests. */
export const LAUNCH_FLAGS: readonly string[] = Object.keys(FLAGS).flatMap((flag) => [flag, hyphenated(flag)]);

const RECOGNISED = /^--(?:index_path|corpus_path|retriever_name|retriever_model)(?:=|$)/;
/** Search-R1's rerank server. */
const RECOGNISED_RERANKER = /^--(?:rerank_model_name_or_path|rerank_topk|reranker_type)(?:=|$)/;
/** agent-lightning's spelling. */
const RECOGNISED_HYPHENATED = /^--(?:index-path|corpus-path|retriever-name|retriever-model)(?:=|$)/;

/** Whether the arguments of `trawl serve` are those of another server. */
export function isLaunchLine(argv: readonly string[]): boolean {
  return argv.some((argument) => RECOGNISED.test(argument)) || isRerankers(argv) || isAgentLightnings(argv);
}

function isRerankers(argv: readonly string[]): boolean {
  return argv.some((argument) => RECOGNISED_RERANKER.test(argument));
}

function isAgentLightnings(argv: readonly string[]): boolean {
  return argv.some((argument) => RECOGNISED_HYPHENATED.test(argument));
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
  const { values, remarks, passedOn } = readFlags(argv);
  const spelling = isAgentLightnings(argv) ? hyphenated : (flag: string) => flag;
  if (isRerankers(argv)) return rerankLine({ values, remarks, passedOn });
  const name = (values.get('retriever_name') ?? DEFAULT_NAME).toLowerCase();
  const corpus = required(values, 'corpus_path', spelling, 'the corpus that the index was made from');
  if (!passedOn.some((argument) => /^--host(?:=|$)/.test(argument))) {
    remarks.push(
      'The server listens only on this machine; the original server listens on every network, as with --host 0.0.0.0.',
    );
  }
  const common = {
    corpus,
    out: values.get('out'),
    rerankModel: reranks(values) ? (values.get('reranker_model') ?? DEFAULT_RERANKER) : undefined,
    serveOptions: [
      ...withoutAutoDevice(passedOn),
      ...rerankOptions(values, passedOn),
      ...dialectOptions(values, passedOn, isAgentLightnings(argv)),
    ],
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
          : [
              `--${spelling('index_path')} ${lucene} is not read: Trawl makes its own index of words from the corpus, once.`,
            ]),
      ],
    };
  }
  const vectors = required(values, 'index_path', spelling, 'the FAISS index');
  const { options, remark } = encoding(name);
  return {
    ...common,
    mode: 'dense',
    vectors,
    model: values.get('retriever_model') ?? DEFAULT_MODEL,
    maxQueryTokens: queryTokens(values),
    importOptions: options,
    remarks: remark === undefined ? remarks : [...remarks, remark],
  };
}

/** Whether the flags are those of `retrieval_rerank_server.py`, which reranks every search. */
function reranks(values: ReadonlyMap<string, string>): boolean {
  return ['retrieval_topk', 'reranking_topk', 'reranker_model', 'reranker_batch_size'].some((flag) => values.has(flag));
}

/** How many passages are reranked and returned. The original ignores both flags, because each request has its own numbers. */
function rerankOptions(values: ReadonlyMap<string, string>, passedOn: readonly string[]): string[] {
  if (!reranks(values)) return [];
  const hasTopk = passedOn.some((argument) => /^--topk(?:=|$)/.test(argument));
  return [
    `--rerank-depth=${values.get('retrieval_topk') ?? RERANKED.depth}`,
    ...(hasTopk ? [] : [`--topk=${values.get('reranking_topk') ?? RERANKED.topk}`]),
  ];
}

function rerankLine({ values, remarks, passedOn }: ReadFlags): RerankLine {
  const type = values.get('reranker_type') ?? RERANKER_TYPE;
  if (type !== RERANKER_TYPE) {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `--reranker_type is ${type}, which is not supported; expected ${RERANKER_TYPE}.`,
    );
  }
  const hasPort = passedOn.some((argument) => /^--port(?:=|$)/.test(argument));
  const topk = values.get('rerank_topk');
  return {
    mode: 'rerank',
    rerankModel: values.get('rerank_model_name_or_path') ?? DEFAULT_RERANKER,
    serveOptions: [
      ...passedOn,
      ...(hasPort ? [] : ['--port', RERANK_PORT]),
      ...(topk === undefined ? [] : [`--topk=${topk}`]),
    ],
    remarks,
  };
}

/**
 * Options for clients that need a dialect by name: ASearcher's and RLinf's need a `url` in every document, and agent-lightning's get
 * scores by default.
 */
function dialectOptions(
  values: ReadonlyMap<string, string>,
  passedOn: readonly string[],
  agentLightning: boolean,
): string[] {
  const addressFolder = values.get('save-address-to');
  const asearcher = addressFolder !== undefined || values.has('pages_path');
  const dialect = asearcher ? 'asearcher' : agentLightning ? 'agent-lightning' : undefined;
  const named = passedOn.some((argument) => /^--dialect(?:=|$)/.test(argument));
  return [
    ...(named || dialect === undefined ? [] : [`--dialect=${dialect}`]),
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

function queryTokens(values: ReadonlyMap<string, string>): number {
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
    if (!flag.takesValue && inline !== undefined) throw usageError(`--${name} takes no value.`);
    const value = flag.takesValue ? (inline ?? argv[++i]) : '';
    if (value === undefined || (inline === undefined && value.startsWith('--'))) {
      throw usageError(`--${name} needs a value.`);
    }
    // The last value of a repeated flag is used, as in argparse.
    values.set(known, value);
    if (flag.remark !== undefined && !remarks.includes(flag.remark)) remarks.push(flag.remark);
  }
  return { values, remarks, passedOn };
}

function required(
  values: ReadonlyMap<string, string>,
  name: string,
  spelling: (flag: string) => string,
  meaning: string,
): string {
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
