import type { ModelIdentity, Pooling } from '../manifest/model-identity.ts';

/** What is known of a family of models where a checkpoint's own files say nothing. */
export interface ModelFamily {
  readonly prefixes: ModelIdentity['prefixes'];
  readonly pooling: Pooling;
  /** Always, whatever modules.json has; else that decides. */
  readonly normalize: boolean;
}

const BGE_ENGLISH = 'Represent this sentence for searching relevant passages: ';
const BGE_CHINESE = '为这个句子生成表示以用于检索相关文章：';

/** First match wins; names in lower case. */
const FAMILIES: readonly { readonly name: RegExp; readonly family: ModelFamily }[] = [
  // Tuned to an instruction of the user's own: none is right for everybody.
  { name: /(^|[^a-z0-9])e5([^a-z0-9].*)?instruct/, family: family('mean', '', '') },
  { name: /(^|[^a-z0-9])e5([^a-z0-9]|$)/, family: family('mean', 'query: ', 'passage: ') },
  { name: /bge-m3/, family: family('cls', '', '') },
  { name: /bge.*zh/, family: family('cls', BGE_CHINESE, '') },
  { name: /bge/, family: family('cls', BGE_ENGLISH, '') },
  // Some of them are normalised (all-MiniLM-L6-v2), some are not (msmarco-MiniLM-L-6-v3).
  { name: /minilm/, family: { ...family('mean', '', ''), normalize: false } },
];

/** The family that the first telling name (folder, then the checkpoint's own) belongs to, or null. */
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
