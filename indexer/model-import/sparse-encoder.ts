import { basename, join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { cachedRepository } from '../../src/encoder/model/hub-cache.ts';
import { type JsonObject, readJsonFileIfPresent } from '../../src/encoder/model/json-file.ts';
import { classesOf, statesPoolingInFiles } from './model-kind.ts';
import { moduleTypes } from './module-types.ts';

/** What a sparse encoder is refused with. */
interface Sign {
  readonly what: string;
  /** Only the name tells, so a stated pooling counts for more. */
  readonly byName: boolean;
}

/** Modules of sentence-transformers' SparseEncoder. Their Python modules moved between versions. */
const MODULES = /(\.sparse_encoder\.|\.(SpladePooling|MLMTransformer|SparseAutoEncoder|CSRSparsity|IDF)$)/;

/**
 * Refuses a sparse encoder (SPLADE), which gives a text a weight for words of its vocabulary. Without files of sentence-transformers only
 * its name tells it from the language model under it.
 *
 * @param stated the pooling that the user states.
 * @throws TrawlError MODEL_INVALID.
 */
export async function refuseSparseEncoder(
  folder: string,
  names: readonly string[],
  config: JsonObject,
  stated: string | undefined,
): Promise<void> {
  const sign = await signOfSparseEncoder(folder, names, config);
  if (sign === null || (sign.byName && (stated !== undefined || (await statesPoolingInFiles(folder))))) return;
  throw new TrawlError(
    'MODEL_INVALID',
    `${folder} is a sparse encoder (SPLADE): ${sign.what}. It gives a text a weight for words of its vocabulary, and Trawl compares dense ` +
      'vectors. An encoder would fit, for example Alibaba-NLP/gte-modernbert-base or intfloat/e5-base-v2; searches by words are those of ' +
      `BM25 (trawl index … --bm25).${sign.byName ? ' If it is a dense encoder, state its pooling: trawl model add SOURCE --pooling mean.' : ''}`,
  );
}

async function signOfSparseEncoder(folder: string, names: readonly string[], config: JsonObject): Promise<Sign | null> {
  const own = (await moduleTypes(folder)).find((type) => MODULES.test(type));
  if (own !== undefined) return { what: `modules.json has the module ${own}`, byName: false };
  const file = 'config_sentence_transformers.json';
  const { model_type: modelType } = (await readJsonFileIfPresent(join(folder, file))) ?? {};
  if (modelType === 'SparseEncoder') return { what: `${file} has the model_type "SparseEncoder"`, byName: false };
  const className = classesOf(config).find((name) => /ForMaskedLM$/.test(name));
  const named = [...names, cachedRepository(folder)?.id ?? basename(folder), String(config._name_or_path ?? '')].find(
    (name) => /splade|neural-sparse/i.test(name),
  );
  if (className === undefined || named === undefined) return null;
  return { what: `its name is ${named}, and config.json has the class ${className}`, byName: true };
}
