import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { JsonObject } from '../src/embedding/model/json-file.ts';
import { knownFamily } from '../src/embedding/model/model-families.ts';

/** A kind of model that gives no vectors of texts, and which models would do its task or give vectors. */
interface OtherKind {
  readonly what: string;
  readonly fitting: string;
}

const ENCODERS = 'An encoder would fit, for example intfloat/e5-base-v2, BAAI/bge-m3 or Qwen/Qwen3-Embedding-0.6B.';

/** Parts of the class names in `architectures`; the first match wins. */
const KINDS: readonly { readonly name: RegExp; readonly kind: OtherKind }[] = [
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
    kind: { what: 'a vision model, which takes images', fitting: ENCODERS },
  },
  { name: /(Whisper|Wav2Vec|ForAudio|ForCTC|Speech)/, kind: { what: 'a speech model', fitting: ENCODERS } },
  {
    name: /(ForConditionalGeneration|ForSeq2SeqLM)$/,
    kind: { what: 'an encoder-decoder, which generates text', fitting: ENCODERS },
  },
  {
    name: /(ForCausalLM|LMHeadModel)$/,
    kind: { what: 'a causal language model, which generates text', fitting: ENCODERS },
  },
  {
    name: /For(TokenClassification|QuestionAnswering|MultipleChoice)$/,
    kind: { what: 'a model that labels tokens or answers questions', fitting: ENCODERS },
  },
];

/**
 * What the model of a config.json is, if it is not an encoder, as a clause and a sentence with fitting models. Null if its class
 * names do not tell.
 */
export function otherKindOf(config: JsonObject): OtherKind | null {
  const { architectures } = config;
  const names = Array.isArray(architectures) ? architectures.map(String) : [];
  // A model of images and text generates text too, so its parts tell more than its class.
  if (['vision_config', 'image_size'].some((key) => config[key] !== undefined)) {
    return { what: 'a vision model, which takes images', fitting: ENCODERS };
  }
  return KINDS.find(({ name }) => names.some((architecture) => name.test(architecture)))?.kind ?? null;
}

/** Whether the class names of a config.json are those of a causal language model. */
export function generatesText({ architectures }: JsonObject): boolean {
  return Array.isArray(architectures) && architectures.some((name) => /(ForCausalLM|LMHeadModel)$/.test(String(name)));
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
  const pooling = config.model_type === 't5' ? 'mean' : 'lasttoken';
  return (
    `${path} describes ${name}, and the folder has no modules.json or 1_Pooling/config.json: this is ` +
    `${otherKindOf(config)?.what ?? 'a language model'}; its vectors are not trained for search. ${ENCODERS} If it is an ` +
    `embedding model whose folder is incomplete, add 1_Pooling/config.json, for example {"pooling_mode": "${pooling}"}.`
  );
}
