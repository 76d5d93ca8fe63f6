import { PartialFile } from './partial-file.ts';

/** Text kept in memory before it is written. */
const BUFFER_CHARACTERS = 256 * 1024;

/** A file of lines that gets its name when it is complete. */
export class LineOutput {
  readonly #file: PartialFile;
  #pending = '';

  private constructor(file: PartialFile) {
    this.#file = file;
  }

  /** @throws TrawlError OUTPUT_EXISTS, OUTPUT_NOT_WRITABLE or DISK_FULL. */
  static async create(path: string, overwrite: boolean, mode?: number): Promise<LineOutput> {
    return new LineOutput(await PartialFile.create(path, overwrite, mode));
  }

  async write(line: string): Promise<void> {
    this.#pending += line;
    if (this.#pending.length >= BUFFER_CHARACTERS) await this.#flush();
  }

  async publish(): Promise<void> {
    await this.#flush();
    await this.#file.publish();
  }

  async discard(): Promise<void> {
    await this.#file.discard();
  }

  async #flush(): Promise<void> {
    const text = this.#pending;
    this.#pending = '';
    await this.#file.write(Buffer.from(text));
  }
}
