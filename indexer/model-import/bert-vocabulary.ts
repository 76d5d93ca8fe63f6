import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { invalidModel, type JsonObject, readJsonFileIfPresent } from '../../src/encoder/model/json-file.ts';

const SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'];

/** Converts a BERT vocabulary to tokenizer.json, as Transformers does. Throws MODEL_INVALID for an option that it cannot convert. */
export async function tokenizerOfVocabulary(folder: string): Promise<JsonObject> {
  const path = join(folder, 'vocab.txt');
  const configPath = join(folder, 'tokenizer_config.json');
  const config = (await readJsonFileIfPresent(configPath)) ?? {};
  checkConfig(configPath, config);
  const vocab: Record<string, number> = Object.create(null);
  const lines = (await readFile(path, 'utf8')).replace(/\n$/, '').split('\n');
  for (const [id, line] of lines.entries()) vocab[line.replace(/\r$/, '')] = id;
  const missing = SPECIAL.find((token) => vocab[token] === undefined);
  if (missing !== undefined) {
    throw invalidModel(`${path} is not a BERT vocabulary: it has no line ${missing}. ${REMEDY}`);
  }
  const special = (content: string) => ({ SpecialToken: { id: content, type_id: 0 } });
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: SPECIAL.map((content) => ({
      id: vocab[content],
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })).toSorted((a, b) => a.id! - b.id!),
    normalizer: {
      type: 'BertNormalizer',
      clean_text: true,
      handle_chinese_chars: config.tokenize_chinese_chars ?? true,
      strip_accents: config.strip_accents ?? null,
      lowercase: config.do_lower_case ?? true,
    },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    post_processor: {
      type: 'TemplateProcessing',
      single: [special('[CLS]'), { Sequence: { id: 'A', type_id: 0 } }, special('[SEP]')],
      pair: [
        special('[CLS]'),
        { Sequence: { id: 'A', type_id: 0 } },
        special('[SEP]'),
        { Sequence: { id: 'B', type_id: 1 } },
        { SpecialToken: { id: '[SEP]', type_id: 1 } },
      ],
      special_tokens: Object.fromEntries(
        ['[CLS]', '[SEP]'].map((token) => [token, { id: token, ids: [vocab[token]], tokens: [token] }]),
      ),
    },
    decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
    model: {
      type: 'WordPiece',
      unk_token: '[UNK]',
      continuing_subword_prefix: '##',
      max_input_chars_per_word: 100,
      vocab,
    },
  };
}

const REMEDY = 'Make tokenizer.json with Python: AutoTokenizer.from_pretrained(folder).save_pretrained(folder).';

function checkConfig(path: string, config: JsonObject): void {
  const tokenizerClass = config.tokenizer_class ?? 'BertTokenizer';
  if (tokenizerClass !== 'BertTokenizer' && tokenizerClass !== 'BertTokenizerFast') {
    throw invalidModel(
      `${path}: tokenizer_class is ${JSON.stringify(tokenizerClass)}. Only BertTokenizer can be converted from vocab.txt. ${REMEDY}`,
    );
  }
  const required: Readonly<Record<string, unknown>> = {
    unk_token: '[UNK]',
    sep_token: '[SEP]',
    pad_token: '[PAD]',
    cls_token: '[CLS]',
    mask_token: '[MASK]',
    do_basic_tokenize: true,
  };
  const neverSplit = Array.isArray(config.never_split) && config.never_split.length > 0;
  const other =
    Object.keys(required).find((name) => config[name] !== undefined && config[name] !== required[name]) ??
    (neverSplit ? 'never_split' : undefined);
  if (other === undefined) return;
  throw invalidModel(
    `${path}: ${other} is ${JSON.stringify(config[other])}. The conversion from vocab.txt does not support this. ${REMEDY}`,
  );
}
