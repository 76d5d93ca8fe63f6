import type { EncoderLoad } from '../text-encoder.ts';

/** Share of the newest request in the mean time of a text. */
const NEWEST = 0.2;

/** Counters of an endpoint's encoder, and the expected wait from the speed of its latest requests. */
export class EndpointLoad {
  #waitingTexts = 0;
  #texts = 0;
  #droppedTexts = 0;
  #chunks = 0;
  #msPerText = 0;
  #running = 0;

  get load(): EncoderLoad {
    return {
      waitingTexts: this.#waitingTexts,
      expectedWaitMs: (this.#waitingTexts * this.#msPerText) / Math.max(1, this.#running),
      texts: this.#texts,
      droppedTexts: this.#droppedTexts,
      chunks: this.#chunks,
    };
  }

  /** Counts a request of `texts` texts until `end` is called; a second call has no effect. */
  request(texts: number): { start(): void; end(how?: 'done' | 'divided'): void } {
    this.#waitingTexts += texts;
    let startedAt: number | undefined;
    let hasEnded = false;
    return {
      start: () => {
        startedAt = performance.now();
        this.#waitingTexts -= texts;
        this.#running++;
        this.#chunks++;
      },
      end: (how = 'done') => {
        if (hasEnded) return;
        hasEnded = true;
        if (startedAt === undefined) {
          this.#waitingTexts -= texts;
          this.#droppedTexts += texts;
          return;
        }
        this.#running--;
        // The requests that it is divided into count its texts.
        if (how === 'divided') return;
        this.#texts += texts;
        const ms = (performance.now() - startedAt) / texts;
        this.#msPerText = this.#msPerText === 0 ? ms : this.#msPerText * (1 - NEWEST) + ms * NEWEST;
      },
    };
  }
}
