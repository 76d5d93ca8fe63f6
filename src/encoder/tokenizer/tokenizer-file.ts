import { invalidModel } from '../model/json-file.ts';

/** The fields of a tokenizer.json that decide the ids of a text. */
export interface TokenizerFile {
  readonly normalizer?: TokenizerPart | null;
  readonly pre_tokenizer?: TokenizerPart | null;
  readonly model?: ModelPart | null;
  readonly post_processor?: PostProcessorPart | null;
  readonly added_tokens?: readonly AddedToken[];
}

export interface AddedToken {
  readonly content: string;
  readonly id: number;
  readonly special?: boolean;
  /** Whether it is found in the normalised text, by its normalised content. Default: not if it is special. */
  readonly normalized?: boolean;
  readonly single_word?: boolean;
  /** Whether white space before it, or after it, belongs to it. */
  readonly lstrip?: boolean;
  readonly rstrip?: boolean;
}

/** A normaliser or pre-tokenizer; `type` says which fields it has. */
export interface TokenizerPart {
  readonly type?: string;
  readonly normalizers?: readonly TokenizerPart[];
  readonly pretokenizers?: readonly TokenizerPart[];
  /** `BertNormalizer`. `strip_accents: null` means the value of `lowercase`. */
  readonly clean_text?: boolean | null;
  readonly handle_chinese_chars?: boolean | null;
  readonly strip_accents?: boolean | null;
  readonly lowercase?: boolean | null;
  /** `Precompiled`. */
  readonly precompiled_charsmap?: string | null;
  /** `Strip`. */
  readonly strip_left?: boolean;
  readonly strip_right?: boolean;
  /** `Replace`, and `Split` (Qwen, Llama 3, Gemma). */
  readonly pattern?: TokenizerPattern;
  readonly content?: string;
  /** `Split` and `Punctuation`: what becomes of a match. */
  readonly behavior?: string;
  readonly invert?: boolean;
  /** `Prepend`. */
  readonly prepend?: string;
  /** `Digits`. */
  readonly individual_digits?: boolean;
  /** `CharDelimiterSplit`. */
  readonly delimiter?: string;
  /** `ByteLevel` (GPT-2, RoBERTa). */
  readonly use_regex?: boolean;
  /** `ByteLevel`, and `Metaspace` in files from before 2023, which have it instead of `prepend_scheme`. */
  readonly add_prefix_space?: boolean;
  /** `Metaspace`. */
  readonly replacement?: string;
  readonly prepend_scheme?: string;
  readonly split?: boolean;
}

export interface TokenizerPattern {
  readonly Regex?: string;
  readonly String?: string;
}

export interface ModelPart {
  /** Absent in files from before 2021, whose other fields tell it. */
  readonly type?: string;
  /** Ids of tokens; of `Unigram` the pieces with their log probabilities, in the order of their ids. */
  readonly vocab?: Readonly<Record<string, number>> | readonly (readonly [piece: string, score: number])[];
  readonly unk_token?: string | null;
  /** `WordPiece`: what a piece begins with that continues a word. */
  readonly continuing_subword_prefix?: string | null;
  readonly max_input_chars_per_word?: number | null;
  /** `BPE`. */
  readonly merges?: readonly (string | readonly [string, string])[];
  readonly end_of_word_suffix?: string | null;
  readonly fuse_unk?: boolean | null;
  readonly byte_fallback?: boolean | null;
  readonly ignore_merges?: boolean | null;
  readonly dropout?: number | null;
  /** `Unigram`. */
  readonly unk_id?: number | null;
}

export interface PostProcessorPart {
  readonly type?: string;
  readonly processors?: readonly PostProcessorPart[];
  /** `TemplateProcessing`. */
  readonly single?: readonly TemplatePiece[];
  readonly pair?: readonly TemplatePiece[];
  readonly special_tokens?: Readonly<Record<string, { readonly ids?: readonly number[] }>>;
  /** `BertProcessing` and `RobertaProcessing`. */
  readonly cls?: readonly [string, number];
  readonly sep?: readonly [string, number];
}

export interface TemplatePiece {
  readonly SpecialToken?: { readonly id: string; readonly type_id: number };
  readonly Sequence?: { readonly id: string; readonly type_id: number };
}

/** The error of a component whose ids could differ from the reference's. */
export function unsupported(kind: string, part: { readonly type?: string }, why = ''): Error {
  return invalidModel(`its ${kind} ${part.type ?? 'without a type'} is not supported${why}`);
}
