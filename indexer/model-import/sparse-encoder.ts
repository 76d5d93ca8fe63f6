import { invalidModel } from '../../src/encoder/model/json-file.ts';
import { familyNames, type ImportSource } from './import-source.ts';
import { classesOf, filesStatePooling } from './model-kind.ts';

/** Modules of sentence-transformers' SparseEncoder. Their Python modules moved between versions. */
const MODULES = /(\.sparse_encoder\.|\.(SpladePooling|MLMTransformer|SparseAutoEncoder|CSRSparsity|IDF)$)/;

/**
 * Refuses a sparse encoder (SPLADE), which gives each text weights of the words of its vocabulary. Without files of sentence-transformers only
 * its name tells it from the language model under it; a stated pooling counts for more than the name. Throws MODEL_INVALID.
 */
export function refuseSparseEncoder(source: ImportSource): void {
  const { folder, config, modules, sentenceTransformers, pooling } = source;
  const own = modules.find((type) => MODULES.test(type));
  if (own !== undefined) throw sparseEncoder(folder, `modules.json has the module ${own}`);
  if (sentenceTransformers.model_type === 'SparseEncoder') {
    throw sparseEncoder(folder, 'config_sentence_transformers.json has the model_type "SparseEncoder"');
  }
  const maskedModel = classesOf(config).find((name) => name.endsWith('ForMaskedLM'));
  const named = familyNames(source).find((name) => /splade|neural-sparse/i.test(name));
  if (maskedModel === undefined || named === undefined || pooling !== undefined || filesStatePooling(folder, modules)) {
    return;
  }
  throw sparseEncoder(
    folder,
    `its name is ${named}, and config.json has the class ${maskedModel}`,
    ' If it is a dense encoder, state its pooling: trawl model add SOURCE --pooling mean.',
  );
}

function sparseEncoder(folder: string, sign: string, advice = '') {
  return invalidModel(
    `${folder} is a sparse encoder (SPLADE): ${sign}. It gives each text weights of the words of its vocabulary, but Trawl compares dense ` +
      'vectors. Use a dense encoder, for example Alibaba-NLP/gte-modernbert-base or intfloat/e5-base-v2; for searches by words, use ' +
      `BM25 (trawl index … --bm25).${advice}`,
  );
}
