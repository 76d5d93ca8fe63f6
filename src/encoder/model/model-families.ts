import type { BeforeTruncation, ModelIdentity, Pooling } from '../identity/model-identity.ts';

/** Defaults of a model family, for checkpoints whose files do not state them. */
export interface ModelFamily {
  readonly prefixes: ModelIdentity['prefixes'];
  readonly pooling: Pooling;
  /** True: always normalised, even if modules.json has no Normalize module. False: modules.json decides. */
  readonly normalize: boolean;
  /** What comes before a truncation of its vectors. */
  readonly beforeTruncation?: BeforeTruncation;
}

const BGE_ENGLISH = 'Represent this sentence for searching relevant passages: ';
const BGE_CHINESE = '为这个句子生成表示以用于检索相关文章：';

/** Without a space after `Query:`. */
const QWEN_SEARCH = 'Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:';

/** First match wins; names in lower case. */
const FAMILIES: readonly { readonly name: RegExp; readonly family: ModelFamily }[] = [
  // Instruct models expect an instruction for the user's task, so they have no default prefix.
  { name: /(^|[^a-z0-9])e5([^a-z0-9].*)?instruct/, family: family('mean', '', '') },
  { name: /(^|[^a-z0-9])e5([^a-z0-9]|$)/, family: family('mean', 'query: ', 'passage: ') },
  { name: /bge-m3/, family: family('cls', '', '') },
  { name: /bge.*zh/, family: family('cls', BGE_CHINESE, '') },
  // Not bge-en-icl and bge-multilingual-gemma2, which take instructions. Ollama's bge-large is the English one.
  { name: /bge[-_](small|base|large)([-_]en|:|$)/, family: family('cls', BGE_ENGLISH, '') },
  { name: /qwen3-embedding/, family: family('last', QWEN_SEARCH, '') },
  {
    name: /nomic-embed-text-v1\.5/,
    family: { ...family('mean', 'search_query: ', 'search_document: '), beforeTruncation: 'layer-norm' },
  },
  { name: /(nomic|modernbert)-embed/, family: family('mean', 'search_query: ', 'search_document: ') },
  { name: /gte-(modernbert|multilingual|(base|large)-en-v1\.5)/, family: family('cls', '', '') },
  // all-MiniLM-L6-v2 is normalised, msmarco-MiniLM-L-6-v3 is not.
  { name: /minilm/, family: { ...family('mean', '', ''), normalize: false } },
];

/** The family of the first name that matches one; null if no name does. */
export function knownFamily(names: readonly string[]): ModelFamily | null {
  for (const name of names) {
    const found = FAMILIES.find((candidate) => candidate.name.test(name.toLowerCase()));
    if (found !== undefined) return found.family;
  }
  return null;
}

function family(pooling: Pooling, query: string, passage: string): ModelFamily {
  return { pooling, prefixes: { query, passage }, normalize: true };
}
