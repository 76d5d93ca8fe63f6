import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type JsonObject, readJsonFileIfPresent, readJsonIfPresent } from '../src/embedding/model/json-file.ts';
import { TrawlError } from '../src/errors.ts';

const POOLING = join('1_Pooling', 'config.json');

/**
 * Whether only the encoder under the head of a late-interaction model (ColBERT) is to be imported: the folder is of such a model, and
 * states a pooling of its own. The head gives every token a vector, and Trawl compares one vector a text.
 *
 * @throws TrawlError MODEL_INVALID for a late-interaction model that states no pooling.
 */
export async function isTrunkOfLateInteraction(folder: string, config: JsonObject): Promise<boolean> {
  const sign = await signOfLateInteraction(folder, config);
  if (sign === null) return false;
  if (existsSync(join(folder, POOLING))) return true;
  throw new TrawlError(
    'MODEL_INVALID',
    `${folder} is a late-interaction model (ColBERT): ${sign}. It gives every token of a text a vector, and Trawl compares one vector a ` +
      'text. An encoder would fit, for example Alibaba-NLP/gte-modernbert-base or intfloat/e5-base-v2. To import only the encoder under ' +
      `the head, whose vectors are trained for tokens, put ${POOLING}, for example {"pooling_mode": "mean"}, into a copy of this folder, and add the copy.`,
  );
}

/** What says that a folder is of a late-interaction model; null if nothing does. */
async function signOfLateInteraction(folder: string, { architectures }: JsonObject): Promise<string | null> {
  const listed = await readJsonIfPresent(join(folder, 'modules.json'));
  const types = Array.isArray(listed) ? listed.map((module: { type?: unknown } | null) => String(module?.type)) : [];
  const names = types.map((type) => type.split('.').at(-1)!);
  // PyLate's Dense comes after each token, that of sentence-transformers after the pooling.
  const own = types.find((type) => type.startsWith('pylate.') || type.endsWith('.MultiVectorMask'));
  if (own !== undefined) return `modules.json has the module ${own}`;
  if (names.includes('Dense') && !names.includes('Pooling')) return 'modules.json has a Dense module and no Pooling';
  const similarity = (await readJsonFileIfPresent(join(folder, 'config_sentence_transformers.json')))
    ?.similarity_fn_name;
  if (/^maxsim$/i.test(String(similarity))) return `its similarity is ${JSON.stringify(similarity)}`;
  const className = Array.isArray(architectures)
    ? architectures.map(String).find((name) => /colbert/i.test(name))
    : undefined;
  if (className !== undefined) return `config.json has the class ${className}`;
  return existsSync(join(folder, 'artifact.metadata')) ? 'it has the file artifact.metadata' : null;
}
