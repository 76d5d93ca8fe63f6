/** The fields of a tokenizer.json that are used; the library reads the others. */
export interface TokenizerFile {
  readonly normalizer?: TokenizerPart | null;
  readonly pre_tokenizer?: TokenizerPart | null;
  readonly model?: TokenizerPart;
  readonly post_processor?: TokenizerPart | null;
  readonly added_tokens?: readonly AddedToken[];
}

export interface AddedToken {
  readonly content: string;
  readonly id?: number;
  readonly special?: boolean;
  readonly normalized?: boolean;
  readonly lstrip?: boolean;
  readonly rstrip?: boolean;
}

/** A normaliser, pre-tokenizer, model or post-processor; `type` says which fields it has. */
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
  /** `Replace`, and `Split` (Qwen, Llama 3). */
  readonly pattern?: { readonly Regex?: string; readonly String?: string };
  readonly behavior?: string;
  readonly invert?: boolean;
  /** `ByteLevel` (GPT-2, RoBERTa). */
  readonly use_regex?: boolean;
  /** `ByteLevel`, and `Metaspace` in files from before 2023, which have it instead of `prepend_scheme`. */
  readonly add_prefix_space?: boolean;
  /** `Metaspace`. */
  readonly replacement?: string;
  readonly prepend_scheme?: 'always' | 'first' | 'never';
  readonly split?: boolean;
  /** `Unigram`: pieces with their log probabilities, in the order of their ids. */
  readonly vocab?: unknown;
  readonly unk_id?: number;
  readonly byte_fallback?: boolean;
}
