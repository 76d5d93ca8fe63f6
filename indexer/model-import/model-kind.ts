import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { invalidModel, type JsonObject } from '../../src/encoder/model/json-file.ts';
import { knownFamily } from '../../src/encoder/model/model-families.ts';
import { className, familyNames, type ImportSource, readModuleTypes } from './import-source.ts';

/** A kind of model that gives no vectors of texts, and which models would do its task or give vectors. */
interface OtherKind {
  readonly what: string;
  readonly fitting: string;
  /** Whether it is a language model, which may have been trained to be an encoder. */
  readonly generates?: boolean;
  /** Whether it takes images or sound. Encoders of these have a pooling, too. */
  readonly takesMedia?: boolean;
}

const ENCODERS = 'An encoder would fit, for example intfloat/e5-base-v2, BAAI/bge-m3 or Qwen/Qwen3-Embedding-0.6B.';

const VISION: OtherKind = { what: 'a vision model, which takes images', fitting: ENCODERS, takesMedia: true };
const ENCODER_DECODER = /(ForConditionalGeneration|ForSeq2SeqLM)$/;

/** Kinds by the class names in `architectures`; the first match wins. */
const KINDS: readonly (readonly [RegExp, OtherKind])[] = [
  [
    /ForSequenceClassification$/,
    {
      what: 'a classifier or cross-encoder, which scores pairs of texts',
      fitting:
        'A cross-encoder of the architecture bert, roberta, xlm-roberta or modernbert, or Qwen3-Reranker, would fit for reranking, ' +
        'for example BAAI/bge-reranker-base.',
    },
  ],
  [/(For(Image|Object|Semantic|Instance|Depth|Video|Vision)|Vision|^ViT|CLIP|Siglip|ImageProcessor)/, VISION],
  [/(Whisper|Wav2Vec|ForAudio|ForCTC|Speech)/, { what: 'a speech model', fitting: ENCODERS, takesMedia: true }],
  [ENCODER_DECODER, { what: 'an encoder-decoder, which generates text', fitting: ENCODERS, generates: true }],
  [
    /(ForCausalLM|LMHeadModel)$/,
    { what: 'a causal language model, which generates text', fitting: ENCODERS, generates: true },
  ],
];

/** Kinds by heads on an encoder. The config of some encoders names the encoder and a head, whose weights are in a file of their own. */
const HEADS: readonly (readonly [RegExp, string])[] = [
  [/ForTokenClassification$/, 'a token classifier, which labels every token (named entities, parts of speech)'],
  [/(ForQuestionAnswering|DPRReader)$/, 'a model of extractive question answering, which marks the answer in a text'],
  [/ForMultipleChoice$/, 'a multiple-choice model, which scores the possible answers to a question'],
  [/ForNextSentencePrediction$/, 'a model that says whether one sentence follows another'],
];

export function classesOf({ architectures }: JsonObject): readonly string[] {
  return Array.isArray(architectures) ? architectures.map(String) : [];
}

/** Whether the model scores pairs or classes, and gives no vectors. */
export function isClassifier(config: JsonObject): boolean {
  return classesOf(config).some((name) => name.endsWith('ForSequenceClassification'));
}

/** The kind of a config.json's model if it is not an encoder; undefined if its class names do not tell. */
export function otherKindOf(config: JsonObject): OtherKind | undefined {
  // A model of images and text generates text too, so its parts tell more than its class.
  if (['vision_config', 'image_size'].some((key) => config[key] !== undefined)) return VISION;
  const names = classesOf(config);
  const isNamed = ([pattern]: readonly [RegExp, unknown]) => names.some((name) => pattern.test(name));
  const kind = KINDS.find(isNamed)?.[1];
  if (kind !== undefined || names.some((name) => /(?<!LMHead)Model$/.test(name))) return kind;
  const head = HEADS.find(isNamed);
  return head && { what: head[1], fitting: ENCODERS };
}

/**
 * Refuses a model that is not an encoder, by its classes. A model with a stated pooling is an encoder: its config often has the class of
 * the checkpoint that it was trained from. Only the user can say that the graph of a model of images or sound takes texts. Throws
 * MODEL_INVALID.
 */
export function refuseOtherKind(source: ImportSource): void {
  const { config, configPath, modules, folder, pooling } = source;
  const kind = otherKindOf(config);
  if (kind === undefined || pooling !== undefined) return;
  if (!kind.takesMedia && filesStatePooling(folder, modules)) return;
  if (kind.generates) {
    if (statesPooling(source)) return;
    throw invalidModel(generatingModelMessage(configPath, config));
  }
  const architectures = classesOf(config);
  throw invalidModel(
    `${configPath}: the model (${architectures.join(', ')}) is ${kind.what}. ${kind.fitting} If it is an encoder of texts whose config names another ` +
      'class, state its pooling: trawl model add SOURCE --pooling mean.',
    { details: { architectures } },
  );
}

/** Whether the folder's files name a pooling, as sentence-transformers' files do. */
export async function statesPoolingInFiles(folder: string): Promise<boolean> {
  return filesStatePooling(folder, await readModuleTypes(folder));
}

export function filesStatePooling(folder: string, modules: ImportSource['modules']): boolean {
  return hasPoolingConfig(folder) || modules.some((type) => className(type) === 'Pooling');
}

export function hasPoolingConfig(folder: string): boolean {
  return existsSync(join(folder, '1_Pooling', 'config.json'));
}

/** What the user should know of an encoder whose pooling nothing states. */
export function assumedPoolingRemark(pooling: string, config: JsonObject): string {
  const pretrained = classesOf(config).find((name) => /For(MaskedLM|PreTraining)$/.test(name));
  return (
    `the pooling ${pooling} is assumed: the checkpoint states none (1_Pooling/config.json), and its name is of no family that Trawl knows. ` +
    'State it with --pooling (mean, cls or last), and --force to replace this model.' +
    (pretrained === undefined
      ? ''
      : ` ${pretrained} is a model that was trained to predict masked words: unless it was trained for search too, its vectors find ` +
        `little. ${ENCODERS}`)
  );
}

/** Whether only the encoder of a model that generates text was saved (T5EncoderModel). */
export function isEncoderAlone({ architectures }: JsonObject): boolean {
  return Array.isArray(architectures) && architectures.every((name) => /EncoderModel$/.test(String(name)));
}

/** Whether the folder's files, or the model's names, say how it gives vectors of texts. */
export function statesPooling(source: ImportSource): boolean {
  const { folder } = source;
  if (existsSync(join(folder, 'modules.json')) || hasPoolingConfig(folder)) return true;
  return knownFamily([...familyNames(source), basename(folder)]) !== null;
}

/** The error message of a model that generates text, without any sign that its vectors are of use. */
export function generatingModelMessage(path: string, config: JsonObject): string {
  const name = Array.isArray(config.architectures) ? String(config.architectures[0]) : String(config.model_type);
  const names = [basename(dirname(path)), String(config._name_or_path ?? '')];
  if (names.some((each) => /rerank/i.test(each))) {
    return (
      `${path} describes ${name}: a reranker that generates its answer, whose prompt is not known. Of these Trawl runs Qwen3-Reranker, ` +
      'which it recognises by its name (for one with its prompt, put qwen3-reranker into the name of its folder). Serve another one with vLLM, ' +
      'and name its address with --rerank http://HOST:PORT; or use a cross-encoder, for example BAAI/bge-reranker-base.'
    );
  }
  // An encoder-decoder's encoder sees the whole text at every token; in a decoder only the last token does.
  const hasEncoder = config.model_type === 't5' || classesOf(config).some((each) => ENCODER_DECODER.test(each));
  const pooling = hasEncoder ? 'mean' : 'last';
  return (
    `${path} describes ${name}, and the folder has no modules.json or 1_Pooling/config.json: this is ` +
    `${otherKindOf(config)?.what ?? 'a language model'}; its vectors are not trained for search. ${ENCODERS} If it is an ` +
    `embedding model whose folder is incomplete, state its pooling: trawl model add SOURCE --pooling ${pooling}.`
  );
}
