import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import type { JsonObject } from '../../src/encoder/model/json-file.ts';
import { knownFamily } from '../../src/encoder/model/model-families.ts';
import type { StatedPooling } from '../../src/encoder/model/transformers-folder.ts';
import { moduleNames } from './module-types.ts';

/** A kind of model that gives no vectors of texts, and which models would do its task or give vectors. */
interface OtherKind {
  readonly what: string;
  readonly fitting: string;
  /** Whether it is a language model, of which encoders are made. */
  readonly generates?: boolean;
  /** Whether it takes images or sound. Encoders of these have a pooling, too. */
  readonly takesMedia?: boolean;
}

const ENCODERS = 'An encoder would fit, for example intfloat/e5-base-v2, BAAI/bge-m3 or Qwen/Qwen3-Embedding-0.6B.';

const VISION: OtherKind = { what: 'a vision model, which takes images', fitting: ENCODERS, takesMedia: true };
const ENCODER_DECODER = /(ForConditionalGeneration|ForSeq2SeqLM)$/;

/** Parts of the class names in `architectures`; the first match wins. */
const KINDS: readonly Named[] = [
  {
    name: /ForSequenceClassification$/,
    kind: {
      what: 'a classifier or cross-encoder, which scores pairs of texts',
      fitting:
        'A cross-encoder of the architecture bert, roberta, xlm-roberta or modernbert, or Qwen3-Reranker, would fit for reranking, ' +
        'for example BAAI/bge-reranker-base.',
    },
  },
  {
    name: /(For(Image|Object|Semantic|Instance|Depth|Video|Vision)|Vision|^ViT|CLIP|Siglip|ImageProcessor)/,
    kind: VISION,
  },
  {
    name: /(Whisper|Wav2Vec|ForAudio|ForCTC|Speech)/,
    kind: { what: 'a speech model', fitting: ENCODERS, takesMedia: true },
  },
  {
    name: ENCODER_DECODER,
    kind: { what: 'an encoder-decoder, which generates text', fitting: ENCODERS, generates: true },
  },
  {
    name: /(ForCausalLM|LMHeadModel)$/,
    kind: { what: 'a causal language model, which generates text', fitting: ENCODERS, generates: true },
  },
];

/** The same for heads on an encoder. The config of some encoders names the encoder and a head, whose weights are in a file of their own. */
const HEADS: readonly Named[] = [
  {
    name: /ForTokenClassification$/,
    kind: { what: 'a token classifier, which labels every token (named entities, parts of speech)', fitting: ENCODERS },
  },
  {
    name: /(ForQuestionAnswering|DPRReader)$/,
    kind: { what: 'a model of extractive question answering, which marks the answer in a text', fitting: ENCODERS },
  },
  {
    name: /ForMultipleChoice$/,
    kind: { what: 'a multiple-choice model, which scores the possible answers to a question', fitting: ENCODERS },
  },
  {
    name: /ForNextSentencePrediction$/,
    kind: { what: 'a model that says whether one sentence follows another', fitting: ENCODERS },
  },
];

interface Named {
  readonly name: RegExp;
  readonly kind: OtherKind;
}

/** The class names in a config.json. */
export function classesOf({ architectures }: JsonObject): readonly string[] {
  return Array.isArray(architectures) ? architectures.map(String) : [];
}

/**
 * What the model of a config.json is, if it is not an encoder, as a clause and a sentence with fitting models. Null if its class
 * names do not tell.
 */
export function otherKindOf(config: JsonObject): OtherKind | null {
  const names = classesOf(config);
  // A model of images and text generates text too, so its parts tell more than its class.
  if (['vision_config', 'image_size'].some((key) => config[key] !== undefined)) {
    return VISION;
  }
  const hasEncoder = names.some((name) => /(?<!LMHead)Model$/.test(name));
  const found = [...KINDS, ...(hasEncoder ? [] : HEADS)].find(({ name }) => names.some((each) => name.test(each)));
  return found?.kind ?? null;
}

/**
 * Refuses a model that is not an encoder, by its classes. Where a pooling is stated it is one: its config often has the class of the
 * checkpoint that it was trained from. Of a model of images or sound only the user can say that its graph takes texts.
 *
 * @param pooling what the user states.
 * @throws TrawlError MODEL_INVALID.
 */
export async function refuseOtherKind(
  folder: string,
  names: readonly string[],
  config: JsonObject,
  pooling: StatedPooling | undefined,
): Promise<void> {
  const kind = otherKindOf(config);
  if (kind === null || pooling !== undefined) return;
  if (!kind.takesMedia && (await statesPoolingInFiles(folder))) return;
  const path = join(folder, 'config.json');
  if (kind.generates) {
    if (statesPooling(folder, names, config)) return;
    throw new TrawlError('MODEL_INVALID', generatingModelMessage(path, config));
  }
  throw new TrawlError(
    'MODEL_INVALID',
    `${path}: the model (${classesOf(config).join(', ')}) is ${kind.what}. ${kind.fitting} If it is an encoder of texts whose config names another ` +
      'class, state its pooling: trawl model add SOURCE --pooling mean.',
    { details: { architectures: classesOf(config) } },
  );
}

/** Whether the folder's files name a pooling, as those of sentence-transformers do. */
export async function statesPoolingInFiles(folder: string): Promise<boolean> {
  return existsSync(join(folder, '1_Pooling', 'config.json')) || (await moduleNames(folder)).includes('Pooling');
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
export function statesPooling(folder: string, names: readonly string[], raw: JsonObject): boolean {
  const files = ['modules.json', join('1_Pooling', 'config.json')];
  if (files.some((file) => existsSync(join(folder, file)))) return true;
  return knownFamily([...names, basename(folder), String(raw._name_or_path ?? '')]) !== null;
}

/** The error message of a model that generates text, without any sign that its vectors are of use. */
export function generatingModelMessage(path: string, config: JsonObject): string {
  const { architectures } = config;
  const name = Array.isArray(architectures) ? String(architectures[0]) : String(config.model_type);
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
