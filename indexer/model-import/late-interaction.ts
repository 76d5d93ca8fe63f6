import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { type JsonObject, readJsonFileIfPresent } from '../../src/encoder/model/json-file.ts';
import { classesOf } from './model-kind.ts';
import { moduleTypes } from './module-types.ts';

const POOLING = join('1_Pooling', 'config.json');

/**
 * Whether only the encoder under the head of a late-interaction model (ColBERT) is to be imported: the folder is of such a model, and
 * it or the user states a pooling. The head gives every token a vector, and Trawl compares one vector a text.
 *
 * @param stated the pooling that the user states.
 * @throws TrawlError MODEL_INVALID for a late-interaction model that states no pooling.
 */
export async function isTrunkOfLateInteraction(
  folder: string,
  config: JsonObject,
  stated: string | undefined,
): Promise<boolean> {
  const sign = await signOfLateInteraction(folder, config);
  if (sign === null) return false;
  if (stated !== undefined || existsSync(join(folder, POOLING))) return true;
  throw new TrawlError(
    'MODEL_INVALID',
    `${folder} is a late-interaction model (ColBERT): ${sign}. It gives every token of a text a vector, and Trawl compares one vector a ` +
      'text. An encoder would fit, for example Alibaba-NLP/gte-modernbert-base or intfloat/e5-base-v2. To import only the encoder under ' +
      'the head, whose vectors are trained for tokens, state how they become one vector: trawl model add SOURCE --pooling mean.',
  );
}

/** What the user should know of such an encoder. */
export const TRUNK_REMARK =
  'only the encoder under the head of the late-interaction model was imported, without the head and the added tokens of its prefixes; ' +
  'its vectors were trained for tokens, so measure their recall first';

/** What says that a folder is of a late-interaction model; null if nothing does. */
async function signOfLateInteraction(folder: string, config: JsonObject): Promise<string | null> {
  const types = await moduleTypes(folder);
  const names = types.map((type) => type.split('.').at(-1)!);
  // PyLate's Dense comes after each token, that of sentence-transformers after the pooling.
  const own = types.find((type) => type.startsWith('pylate.') || type.endsWith('.MultiVectorMask'));
  if (own !== undefined) return `modules.json has the module ${own}`;
  if (names.includes('Dense') && !names.includes('Pooling')) return 'modules.json has a Dense module and no Pooling';
  const similarity = (await readJsonFileIfPresent(join(folder, 'config_sentence_transformers.json')))
    ?.similarity_fn_name;
  if (/^maxsim$/i.test(String(similarity))) return `its similarity is ${JSON.stringify(similarity)}`;
  const className = classesOf(config).find((name) => /colbert/i.test(name));
  if (className !== undefined) return `config.json has the class ${className}`;
  return existsSync(join(folder, 'artifact.metadata')) ? 'it has the file artifact.metadata' : null;
}
