import { type Static, Type } from 'typebox';
import { invalidModel, type JsonObject, matching } from '../model/json-file.ts';

/** More ids than any vocabulary has. Products of two are exact. */
export const MOST_IDS = 2 ** 26;

const text = Type.Optional(Type.String());
const character = Type.Optional(Type.String({ minLength: 1, maxLength: 1 }));
const flag = Type.Optional(Type.Boolean());
const flagOrNull = Type.Optional(Type.Union([Type.Boolean(), Type.Null()]));
const textOrNull = Type.Optional(Type.Union([Type.String(), Type.Null()]));
const numberOrNull = Type.Optional(Type.Union([Type.Number(), Type.Null()]));
const id = Type.Integer({ minimum: 0 });

const AddedToken = Type.Object({
  content: Type.String(),
  id,
  special: flag,
  /** Whether it is found in the normalised text, by its normalised content. Default: not if it is special. */
  normalized: flag,
  single_word: flag,
  /** Whether white space before it, or after it, belongs to it. */
  lstrip: flag,
  rstrip: flag,
});
export type AddedToken = Static<typeof AddedToken>;

const TokenizerPattern = Type.Object({ Regex: text, String: text });
export type TokenizerPattern = Static<typeof TokenizerPattern>;

/** A normaliser or pre-tokenizer; `type` says which fields it has. */
const TokenizerPart = Type.Cyclic(
  {
    Part: Type.Object({
      type: text,
      normalizers: Type.Optional(Type.Array(Type.Ref('Part'))),
      pretokenizers: Type.Optional(Type.Array(Type.Ref('Part'))),
      /** `BertNormalizer`. `strip_accents: null` means the value of `lowercase`. */
      clean_text: flag,
      handle_chinese_chars: flag,
      strip_accents: flagOrNull,
      lowercase: flag,
      /** `Precompiled`. */
      precompiled_charsmap: textOrNull,
      /** `Strip`. */
      strip_left: flag,
      strip_right: flag,
      /** `Replace`, and `Split` (Qwen, Llama 3, Gemma). */
      pattern: Type.Optional(TokenizerPattern),
      content: text,
      /** `Split` and `Punctuation`: what becomes of a match. */
      behavior: text,
      invert: flag,
      /** `Prepend`. */
      prepend: text,
      /** `Digits`. */
      individual_digits: flag,
      /** `CharDelimiterSplit`. */
      delimiter: character,
      /** `ByteLevel` (GPT-2, RoBERTa). */
      use_regex: flag,
      /** `ByteLevel`, and `Metaspace` in files from before 2023, which have it instead of `prepend_scheme`. */
      add_prefix_space: flagOrNull,
      /** `Metaspace`. */
      replacement: character,
      prepend_scheme: text,
      split: flagOrNull,
    }),
  },
  'Part',
);
export type TokenizerPart = Static<typeof TokenizerPart>;

const ModelPart = Type.Object({
  /** Absent in files from before 2021, whose other fields tell it. */
  type: text,
  /** Ids of tokens; of `Unigram` the pieces with their log probabilities, in the order of their ids. The model checks this long part. */
  vocab: Type.Optional(Type.Unsafe<Readonly<Record<string, number>> | readonly (readonly [string, number])[]>({})),
  unk_token: textOrNull,
  /** `WordPiece`: what a piece begins with that continues a word. */
  continuing_subword_prefix: textOrNull,
  max_input_chars_per_word: Type.Optional(id),
  /** `BPE`. The model checks the merges, too. */
  merges: Type.Optional(Type.Unsafe<readonly (string | readonly [string, string])[]>({})),
  end_of_word_suffix: textOrNull,
  fuse_unk: flagOrNull,
  byte_fallback: flagOrNull,
  ignore_merges: flagOrNull,
  dropout: numberOrNull,
  /** `Unigram`. */
  unk_id: numberOrNull,
});
export type ModelPart = Static<typeof ModelPart>;

const place = Type.Optional(Type.Object({ id: Type.String(), type_id: id }));
const TemplatePiece = Type.Object({ SpecialToken: place, Sequence: place });
export type TemplatePiece = Static<typeof TemplatePiece>;

const tokenAndId = Type.Optional(Type.Tuple([Type.String(), id]));
const PostProcessorPart = Type.Cyclic(
  {
    Processor: Type.Object({
      type: text,
      processors: Type.Optional(Type.Array(Type.Ref('Processor'))),
      /** `TemplateProcessing`. */
      single: Type.Optional(Type.Array(TemplatePiece)),
      pair: Type.Optional(Type.Array(TemplatePiece)),
      special_tokens: Type.Optional(Type.Record(Type.String(), Type.Object({ ids: Type.Array(id) }))),
      /** `BertProcessing` and `RobertaProcessing`. */
      cls: tokenAndId,
      sep: tokenAndId,
    }),
  },
  'Processor',
);
export type PostProcessorPart = Static<typeof PostProcessorPart>;

/** The fields of a tokenizer.json that decide the ids of a text. */
const TokenizerFile = Type.Object({
  normalizer: Type.Optional(Type.Union([TokenizerPart, Type.Null()])),
  pre_tokenizer: Type.Optional(Type.Union([TokenizerPart, Type.Null()])),
  model: Type.Optional(Type.Union([ModelPart, Type.Null()])),
  post_processor: Type.Optional(Type.Union([PostProcessorPart, Type.Null()])),
  added_tokens: Type.Optional(Type.Array(AddedToken)),
});
export type TokenizerFile = Static<typeof TokenizerFile>;

/** Throws MODEL_INVALID for a field of another type than the reference's. `place` begins the message. */
export function readTokenizerFile(json: JsonObject, place = ''): TokenizerFile {
  try {
    return matching(TokenizerFile, json, (fault) => place + fault);
  } catch (error) {
    throw error instanceof RangeError ? invalidModel(`${place}its components are nested too deeply`) : error;
  }
}

/** The error of a component whose ids could differ from the reference's. */
export function unsupported(kind: string, part: { readonly type?: string }, why = ''): Error {
  return invalidModel(`its ${kind} ${part.type ?? 'without a type'} is not supported${why}`);
}
