import { TrawlError } from '../../errors.ts';
import type { EncoderKernel } from '../../native/encoder-kernel.ts';
import { loadKernel } from '../../native/kernel.ts';
import type { GraphOutput } from './onnx-session.ts';
import type { TokenBatch } from './token-batch.ts';

/** The native forward pass in bfloat16 on CPU threads, with the interface of `OnnxSession`. `run` blocks its thread. */
export class NativeSession {
  readonly isPooled = false;
  readonly #kernel: EncoderKernel;
  readonly #bert: ReturnType<EncoderKernel['open']>;
  readonly #hidden: number;

  private constructor(kernel: EncoderKernel, bert: ReturnType<EncoderKernel['open']>) {
    this.#kernel = kernel;
    this.#bert = bert;
    this.#hidden = kernel.facts(bert).hidden;
  }

  /** Throws ENGINE_MISSING without the native engine, MODEL_INVALID if the file is not one of weights. */
  static open(path: string): NativeSession {
    const loaded = loadKernel();
    if (!loaded.ok) {
      throw new TrawlError(
        'ENGINE_MISSING',
        `bfloat16 needs the native engine, which cannot be used (${loaded.reason}). Choose another precision with --precision, or ` +
          'set Trawl up on a machine with a C++ compiler.',
      );
    }
    const kernel = loaded.kernel.encoder;
    try {
      return new NativeSession(kernel, kernel.open(path));
    } catch (error) {
      if (!(error instanceof TrawlError) || error.code === 'OUT_OF_MEMORY') throw error;
      throw new TrawlError('MODEL_INVALID', error.message, { cause: error });
    }
  }

  /** Runs texts of equal length, without padding, on `threads` threads, which change no bit. Throws ENCODER_FAILED. */
  async run({ ids, types, rows, length, tokens }: TokenBatch, threads: number): Promise<GraphOutput> {
    if (tokens.some((count) => count !== length)) {
      throw new TrawlError('ENCODER_FAILED', 'The native encoder takes texts of equal length only, without padding.');
    }
    try {
      const data = this.#kernel.run(this.#bert, { ids, types, texts: rows, length, threads });
      return { data, dims: [rows, length, this.#hidden] };
    } catch (error) {
      throw new TrawlError(
        'ENCODER_FAILED',
        `The model failed on ${rows === 1 ? 'a text' : `${rows} texts`} of ${length} tokens: ${(error as Error).message}`,
        { details: { texts: rows, tokens: length }, cause: error },
      );
    }
  }

  async close(): Promise<void> {
    this.#kernel.close(this.#bert);
  }
}
