import type { TrawlError } from '../../src/base/errors.ts';
import { invalidModel, type JsonObject } from '../../src/encoder/model/json-file.ts';
import { OTHERWISE_SERVED } from './config-reader.ts';
import type { EncoderArchitecture, EncoderFamily } from './encoder-family.ts';
import { BERT_FAMILY } from './families/bert.ts';
import { MODERNBERT_FAMILY } from './families/modernbert.ts';
import { QWEN3_FAMILY } from './families/qwen3.ts';
import { ROTARY_BERT_FAMILY } from './families/rotary-bert.ts';
import { T5_FAMILY } from './families/t5.ts';
import { otherKindOf } from './model-kind.ts';

const FAMILIES: readonly EncoderFamily[] = [
  BERT_FAMILY,
  QWEN3_FAMILY,
  MODERNBERT_FAMILY,
  ROTARY_BERT_FAMILY,
  T5_FAMILY,
];

export function isSupportedArchitecture(modelType: unknown): boolean {
  return familyOf(modelType) !== undefined;
}

/** Reads the architecture from config.json. Throws MODEL_INVALID, with `path`, if it is not supported. */
export function readArchitecture(config: JsonObject, path: string): EncoderArchitecture {
  const family = familyOf(config.model_type);
  if (family === undefined) throw unsupported(path, config);
  return family.parse(config, path);
}

function familyOf(modelType: unknown): EncoderFamily | undefined {
  return FAMILIES.find((family) => family.modelTypes.includes(String(modelType)));
}

function unsupported(path: string, config: JsonObject): TrawlError {
  const modelType = JSON.stringify(config.model_type);
  const details = { modelType: typeof config.model_type === 'string' ? config.model_type : null };
  const kind = otherKindOf(config);
  if (kind !== undefined) {
    return invalidModel(`${path}: the model (model_type ${modelType}) is ${kind.what}. ${kind.fitting}`, { details });
  }
  const known = FAMILIES.map(({ modelTypes, examples }) => `${modelTypes.join(', ')} (${examples})`).join('; ');
  return invalidModel(
    `${path}: the architecture ${modelType} is not supported. Import makes graphs for encoders of these ` +
      `architectures: ${known}. If the model has an ONNX export, put model.onnx into the folder; it is used unchanged. ${OTHERWISE_SERVED}.`,
    { details },
  );
}
