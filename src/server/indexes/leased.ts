/** Something that requests use at the same time. Once it is retired, it is closed after the last of them. */
export class Leased<Resource extends { close(): Promise<void> }> {
  readonly resource: Resource;
  #leases = 0;
  #onLastRelease: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(resource: Resource) {
    this.resource = resource;
  }

  get isUsed(): boolean {
    return this.#leases > 0;
  }

  /** Returns the release, which may be called twice. No lease may be taken after `retire`. */
  lease(): () => void {
    this.#leases++;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#leases--;
      if (this.#leases === 0) this.#onLastRelease?.();
    };
  }

  /** Closes the resource after its last lease. Safe to call twice. */
  retire(): Promise<void> {
    this.#closing ??= new Promise<void>((resolve) => {
      if (this.#leases === 0) resolve();
      else this.#onLastRelease = resolve;
    }).then(() => this.resource.close());
    return this.#closing;
  }
}
