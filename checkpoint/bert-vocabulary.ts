import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type JsonObject, readJsonFileIfPresent } from '../src/embedding/json-file.ts';
import { TrawlError } from '../src/errors.ts';

const SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'];

/**
 * The tokenizer.json that Transformers makes of a BERT vocab.txt and tokenizer_config.json. Options that the two formats
 * do not share are refused rather than guessed at: MODEL_INVALID.
 */
export async function tokenizerOfVocabulary(folder: string): Promise<JsonObject> {
  const path = join(folder, 'vocab.txt');
  const config = (await readJsonFileIfPresent(join(folder, 'tokenizer_config.json'))) ?? {};
  checkConfig(join(folder, 'tokenizer_config.json'), config);
  const vocab: Record<string, number> = Object.create(null);
  const lines = (await readFile(path, 'utf8')).replace(/\n$/, '').split('\n');
  for (const [id, line] of lines.entries()) vocab[line.replace(/\r$/, '')] = id;
  const missing = SPECIAL.find((token) => vocab[token] === undefined);
  if (missing !== undefined) {
    throw new TrawlError('MODEL_INVALID', `${path} has no line ${missing}: it is not BERT's. ${WAY_OUT}`);
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

const WAY_OUT =
  'Make tokenizer.json with Python: AutoTokenizer.from_pretrained(folder).save_pretrained(folder) writes it.';

function checkConfig(path: string, config: JsonObject): void {
  const kind = config.tokenizer_class ?? 'BertTokenizer';
  if (kind !== 'BertTokenizer' && kind !== 'BertTokenizerFast') {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path} names the tokenizer ${JSON.stringify(kind)}, not BERT's. ${WAY_OUT}`,
    );
  }
  const usual: Readonly<Record<string, unknown>> = {
    unk_token: '[UNK]',
    sep_token: '[SEP]',
    pad_token: '[PAD]',
    cls_token: '[CLS]',
    mask_token: '[MASK]',
    do_basic_tokenize: true,
  };
  const other = Object.keys(usual).find((name) => config[name] !== undefined && config[name] !== usual[name]);
  const neverSplit = Array.isArray(config.never_split) && config.never_split.length > 0;
  if (other !== undefined || neverSplit) {
    const name = other ?? 'never_split';
    throw new TrawlError(
      'MODEL_INVALID',
      `${path}: ${name} is ${JSON.stringify(config[name])}, which vocab.txt alone does not tell how to follow. ${WAY_OUT}`,
    );
  }
}
