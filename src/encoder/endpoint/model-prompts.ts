import type { ModelIdentity } from '../identity/model-identity.ts';
import { knownFamily } from '../model/model-families.ts';

type Prefixes = ModelIdentity['prefixes'];

const WEB_SEARCH = 'Given a web search query, retrieve relevant passages that answer the query';
const INSTRUCTED: Prefixes = { query: `Instruct: ${WEB_SEARCH}\nQuery: `, passage: '' };
const NONE: Prefixes = { query: '', passage: '' };

/**
 * The prompts of models that are often behind an endpoint, by names in lower case; first match wins. From the models' cards and
 * `config_sentence_transformers.json`; instruct models get the instruction for web search. The families of model folders follow.
 */
const PROMPTS: readonly { readonly name: RegExp; readonly prefixes: Prefixes }[] = [
  { name: /e5-mistral|multilingual-e5-large-instruct|gte-qwen2/, prefixes: INSTRUCTED },
  { name: /nomic-embed-text|modernbert-embed/, prefixes: { query: 'search_query: ', passage: 'search_document: ' } },
  {
    name: /embedding-?gemma/,
    prefixes: { query: 'task: search result | query: ', passage: 'title: none | text: ' },
  },
  {
    name: /jina-embeddings-v3/,
    prefixes: {
      query: 'Represent the query for retrieving evidence documents: ',
      passage: 'Represent the document for retrieval: ',
    },
  },
  {
    // Its card's instruction for questions, as BrowseComp-Plus uses it.
    name: /reasonir/,
    prefixes: {
      query: '<|user|>\nGiven a question, retrieve relevant passages that help answer the question\n<|embed|>\n',
      passage: '<|embed|>\n',
    },
  },
  { name: /arctic-embed(.*v2|2)/, prefixes: { query: 'query: ', passage: '' } },
  {
    name: /arctic-embed|mxbai-embed-large/,
    prefixes: { query: 'Represent this sentence for searching relevant passages: ', passage: '' },
  },
  {
    name: /text-embedding-(3-|ada-)|gte-modernbert|granite-embedding|gte-(multilingual|base|large|small)/,
    prefixes: NONE,
  },
  { name: /contriever|gtr-t5|sentence-t5|all-mpnet|token-average/, prefixes: NONE },
];

/** The prompts of the model of this name; null if it is not known. */
export function modelPrompts(name: string): Prefixes | null {
  const found = PROMPTS.find((candidate) => candidate.name.test(name.toLowerCase()));
  return found?.prefixes ?? knownFamily([name])?.prefixes ?? null;
}
