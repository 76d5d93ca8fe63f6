import type { BeforeTruncation, ModelIdentity, Pooling } from '../identity/model-identity.ts';

/** Defaults of a model family, for checkpoints whose files do not state them. */
export interface ModelFamily {
  readonly prefixes: ModelIdentity['prefixes'];
  readonly pooling: Pooling;
  /** True: always normalised, even if modules.json has no Normalize module. False: modules.json decides. */
  readonly normalize: boolean;
  readonly beforeTruncation?: BeforeTruncation;
}

const BGE_ENGLISH = 'Represent this sentence for searching relevant passages: ';
const JINA_QUERY = 'Represent the query for retrieving evidence documents: ';
/** The instruction for questions in ReasonIR's model card; BrowseComp-Plus uses it, too. */
const REASONIR_QUERY =
  '<|user|>\nGiven a question, retrieve relevant passages that help answer the question\n<|embed|>\n';
const BGE_CHINESE = '为这个句子生成表示以用于检索相关文章：';

/** Without a space after `Query:`. */
const QWEN_SEARCH = 'Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:';

/** First match wins; names in lower case. */
const FAMILIES: readonly (readonly [RegExp, ModelFamily])[] = [
  // Instruct models expect an instruction for the user's task, so they have no default prefix.
  [/(^|[^a-z0-9])e5([^a-z0-9].*)?instruct/, family('mean', '', '')],
  [/(^|[^a-z0-9])e5([^a-z0-9]|$)/, family('mean', 'query: ', 'passage: ')],
  [/bge-m3/, family('cls', '', '')],
  [/bge.*zh/, family('cls', BGE_CHINESE, '')],
  // Not bge-en-icl and bge-multilingual-gemma2, which take instructions. Ollama's bge-large is the English one.
  [/bge[-_](small|base|large)([-_]en|:|$)/, family('cls', BGE_ENGLISH, '')],
  [/qwen3-embedding/, family('last', QWEN_SEARCH, '')],
  [
    /nomic-embed-text-v1\.5/,
    { ...family('mean', 'search_query: ', 'search_document: '), beforeTruncation: 'layer-norm' },
  ],
  [/(nomic|modernbert)-embed/, family('mean', 'search_query: ', 'search_document: ')],
  [/gte-(modernbert|multilingual|(base|large)-en-v1\.5)/, family('cls', '', '')],
  // all-MiniLM-L6-v2 is normalised, msmarco-MiniLM-L-6-v3 is not.
  [/minilm/, { ...family('mean', '', ''), normalize: false }],
];

/** The family of the first name that matches one; null if no name does. */
export function knownFamily(names: readonly string[]): ModelFamily | null {
  for (const name of names) {
    const found = FAMILIES.find(([pattern]) => pattern.test(name.toLowerCase()));
    if (found !== undefined) return found[1];
  }
  return null;
}

function family(pooling: Pooling, query: string, passage: string): ModelFamily {
  return { pooling, prefixes: { query, passage }, normalize: true };
}

type Prefixes = ModelIdentity['prefixes'];

function prefixes(query: string, passage: string): Prefixes {
  return { query, passage };
}

/**
 * The prompts of models that are often behind an endpoint, by names in lower case; first match wins. From the models' cards and configs.
 * The families of model folders follow.
 */
const ENDPOINT_PROMPTS: readonly (readonly [RegExp, Prefixes])[] = [
  [/e5-mistral|multilingual-e5-large-instruct|gte-qwen2/, prefixes(`${QWEN_SEARCH} `, '')],
  [/nomic-embed-text|modernbert-embed/, prefixes('search_query: ', 'search_document: ')],
  [/embedding-?gemma/, prefixes('task: search result | query: ', 'title: none | text: ')],
  [/jina-embeddings-v3/, prefixes(JINA_QUERY, 'Represent the document for retrieval: ')],
  [/reasonir/, prefixes(REASONIR_QUERY, '<|embed|>\n')],
  [/arctic-embed(.*v2|2)/, prefixes('query: ', '')],
  [/arctic-embed|mxbai-embed-large/, prefixes(BGE_ENGLISH, '')],
  [/text-embedding-(3-|ada-)|gte-modernbert|granite-embedding|gte-(multilingual|base|large|small)/, prefixes('', '')],
  [/contriever|gtr-t5|sentence-t5|all-mpnet|token-average/, prefixes('', '')],
];

/** The prompts of the model of this name behind an endpoint; undefined if it is not known. */
export function modelPrompts(name: string): Prefixes | undefined {
  const found = ENDPOINT_PROMPTS.find(([pattern]) => pattern.test(name.toLowerCase()));
  return found?.[1] ?? knownFamily([name])?.prefixes;
}
