import { join } from 'node:path';
import type { Metric } from '../../engine/metric.ts';
import type { ModelIdentity } from '../identity/model-identity.ts';
import { readTokenizerFile } from '../tokenizer/tokenizer-file.ts';
import { invalidModel, type JsonObject, readJsonFileIfPresent } from './json-file.ts';

/** Names of the config of a Transformer module, in the order in which sentence-transformers looks for them. */
const TRANSFORMER_CONFIGS = ['bert', 'roberta', 'distilbert', 'camembert', 'albert', 'xlm-roberta', 'xlnet'].map(
  (name) => `sentence_${name}_config.json`,
);

/** Arguments that sentence-transformers passes on, which may change the ids or the graph. */
const PASSED_ARGUMENTS = ['tokenizer_args', 'processor_kwargs', 'config_args', 'config_kwargs', 'processing_kwargs'];

/** The config of a Transformer module; empty without one. Throws MODEL_INVALID for a setting that Trawl does not follow. */
async function readTransformerConfig(folder: string): Promise<JsonObject> {
  for (const name of TRANSFORMER_CONFIGS) {
    const path = join(folder, name);
    const config = await readJsonFileIfPresent(path);
    if (config === null || Object.keys(config).length === 0) continue;
    for (const key of PASSED_ARGUMENTS) {
      if (Object.keys(config[key] ?? {}).length > 0) throw notFollowed(path, key, config[key]);
    }
    const { transformer_task: task = 'feature-extraction', module_output_name: output = 'token_embeddings' } = config;
    if (task !== 'feature-extraction' && task !== 'sequence-classification')
      throw notFollowed(path, 'transformer_task', task);
    if (task === 'feature-extraction' && output !== 'token_embeddings') {
      throw notFollowed(path, 'module_output_name', output);
    }
    return config;
  }
  return {};
}

/** The first token limit that the files of a Transformer module state; undefined if none does. */
export async function readStatedMaxTokens(folder: string): Promise<number | undefined> {
  const sentence = await readTransformerConfig(folder);
  const tokenizer = await readJsonFileIfPresent(join(folder, 'tokenizer_config.json'));
  const stated = [sentence.max_seq_length, tokenizer?.model_max_length];
  return stated.find((value): value is number => Number.isSafeInteger(value) && (value as number) > 2);
}

/** Classes that transformers makes from tokenizer_config.json, whatever tokenizer.json says. */
const BERT_CLASS = /^(Bert|DistilBert|Electra|MPNet)Tokenizer(Fast)?$/;
const BYTE_LEVEL_CLASS = /^(GPT2|Roberta|Qwen2)Tokenizer(Fast)?$/;

/**
 * A tokenizer.json as transformers 5 and sentence-transformers use it, which follow settings in other files; the same object if these
 * change nothing. Throws MODEL_INVALID for a setting that Trawl does not follow.
 */
export async function withTokenizerSettings(folder: string, file: JsonObject): Promise<JsonObject> {
  const path = join(folder, 'tokenizer_config.json');
  const config = (await readJsonFileIfPresent(path)) ?? {};
  if (config.truncation_side === 'left') throw notFollowed(path, 'truncation_side', 'left', '; set it to "right"');
  readTokenizerFile(file, `${join(folder, 'tokenizer.json')}: `);
  const [own, words] = [file.normalizer, file.pre_tokenizer] as (JsonObject | null | undefined)[];
  const isBert = own?.type === 'BertNormalizer' && words?.type === 'BertPreTokenizer';
  const tokenizerClass = config.tokenizer_class ?? (isBert ? 'BertTokenizer' : '');
  let changed = file;
  if (BERT_CLASS.test(String(tokenizerClass))) {
    if (!isBert) {
      const instead = `${own?.type ?? 'no normalizer'} and ${words?.type ?? 'no pre-tokenizer'} of tokenizer.json`;
      throw invalidModel(
        `${path}: tokenizer_class is ${JSON.stringify(tokenizerClass)}, for which transformers 5 uses BertNormalizer and BertPreTokenizer, not ` +
          `${instead}. To use tokenizer.json as it is, set tokenizer_class to "PreTrainedTokenizerFast".`,
      );
    }
    const normalizer = {
      type: 'BertNormalizer',
      clean_text: true,
      handle_chinese_chars: config.tokenize_chinese_chars ?? true,
      strip_accents: config.strip_accents ?? null,
      lowercase: config.do_lower_case ?? true,
    };
    const isSame = Object.entries(normalizer).every(([key, value]) => (own[key] ?? null) === value);
    if (!isSame) changed = { ...file, normalizer };
  }
  if (BYTE_LEVEL_CLASS.test(String(tokenizerClass))) checkPrefixSpace(path, config, file);
  if ((await readTransformerConfig(folder)).do_lower_case !== true) return changed;
  const normalizer = (changed.normalizer ?? null) as JsonObject | null;
  const normalizers = (
    normalizer?.type === 'Sequence' ? (normalizer.normalizers ?? []) : [normalizer]
  ) as (JsonObject | null)[];
  const lowers = normalizers.some((part) => part?.type === 'Lowercase' || (part?.lowercase ?? false) === true);
  if (lowers) return changed;
  const parts = [{ type: 'Lowercase' }, ...normalizers.filter((part) => part !== null)];
  return { ...changed, normalizer: { type: 'Sequence', normalizers: parts } };
}

function checkPrefixSpace(path: string, { add_prefix_space: space = false }: JsonObject, file: JsonObject): void {
  const part = (file.pre_tokenizer ?? null) as { type?: string; add_prefix_space?: unknown; pretokenizers?: [] } | null;
  const byteLevel = [part, ...((part?.pretokenizers ?? []) as (typeof part)[])].find(
    (one) => one?.type === 'ByteLevel',
  );
  const own = byteLevel?.add_prefix_space ?? true;
  if (byteLevel === undefined || own === space) return;
  throw notFollowed(
    path,
    'add_prefix_space',
    space,
    `, as tokenizer.json has ${own}; give both files the value with which it was trained`,
  );
}

/**
 * The prompts that sentence-transformers puts before queries and passages; undefined if config_sentence_transformers.json states none.
 * Recent versions write empty prompts for every model, which say nothing. Throws MODEL_INVALID for a default prompt that leaves open
 * before which texts it comes.
 */
export function statedPrefixes(path: string, config: JsonObject): ModelIdentity['prefixes'] | undefined {
  const prompts = (config.prompts ?? {}) as JsonObject;
  const textsOf = (...names: string[]) => names.map((name) => prompts[name]).filter((text) => typeof text === 'string');
  const [queries, passages] = [textsOf('query'), textsOf('document', 'passage', 'corpus')];
  const byDefault = prompts[String(config.default_prompt_name)] ?? '';
  if (byDefault !== '' && (queries.length === 0 || passages.length === 0)) {
    throw invalidModel(
      `${path}: default_prompt_name is ${JSON.stringify(config.default_prompt_name)}, a prompt that sentence-transformers puts before texts ` +
        'of encode(), but not of encode_query() and encode_document(). Say which texts get it: state prompts named query and document ' +
        '(the empty text for none).',
    );
  }
  const first = (texts: readonly string[]) => texts.find((text) => text !== '') ?? '';
  const stated = { query: first(queries), passage: first(passages) };
  return stated.query === '' && stated.passage === '' ? undefined : stated;
}

/** Throws MODEL_INVALID for a similarity that Trawl does not compute. */
export function statedMetric(path: string, { similarity_fn_name: name }: JsonObject, normalizes: boolean): Metric {
  const known: Readonly<Record<string, Metric>> = { euclidean: 'l2', dot: 'inner-product', dot_score: 'inner-product' };
  // On unit vectors inner product and cosine are equal, and the inner product is cheaper.
  if (name == null || name === 'cosine') return name === 'cosine' && !normalizes ? 'cosine' : 'inner-product';
  const metric = known[String(name)];
  if (metric === undefined)
    throw notFollowed(path, 'similarity_fn_name', name, '; it must be cosine, dot or euclidean');
  return metric;
}

/** Throws MODEL_INVALID for settings of a pooling, and of what follows it, that change vectors and that Trawl does not follow. */
export function refuseOtherVectors(
  path: string,
  { truncate_dim: dimension = null }: JsonObject,
  pooling: { readonly path: string; readonly config: JsonObject } | undefined,
  prefixes: ModelIdentity['prefixes'],
): void {
  if (dimension !== null) {
    throw notFollowed(
      path,
      'truncate_dim',
      dimension,
      `; remove it, and pass --dimension ${String(dimension)} to trawl index`,
    );
  }
  if (pooling?.config.include_prompt !== false || prefixes.query + prefixes.passage === '') return;
  throw notFollowed(
    pooling.path,
    'include_prompt',
    false,
    ` with the prompts ${JSON.stringify(prefixes)}, whose tokens Trawl pools, too`,
  );
}

function notFollowed(path: string, key: string, value: unknown, more = '') {
  return invalidModel(
    `${path}: ${key} is ${JSON.stringify(value)}, which Trawl does not follow, so its vectors would differ from the vectors that sentence-transformers makes${more}. ` +
      'A server of embeddings that runs the model can be used instead: --model http://HOST:PORT (docs/endpoints.md).',
    { details: { key, value } },
  );
}
