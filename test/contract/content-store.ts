// What every ContentStore does (architecture §2.6, §3.6).
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ContentStore } from '../../src/ports/content.ts';
import { newId } from './given.ts';

export function contentStoreContract(content: () => ContentStore): void {
  const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

  describe('ContentStore', () => {
    it('architecture §2.6 keeps bytes by their hash, again and again', async () => {
      const bytes = Uint8Array.from({ length: 70_000 }, (_, at) => (at * 31) % 256);
      const hash = await content().put({ tenant: 'default' }, bytes);
      expect(hash).toBe(`sha256:${createHash('sha256').update(bytes).digest('hex')}`);
      expect(await content().put({ tenant: 'default' }, bytes)).toBe(hash);
      expect(Buffer.from(await content().get('default', hash)).equals(bytes)).toBe(true);
    });

    it('architecture §2.6 keeps several values at once, of which some may be equal or known', async () => {
      const [one, two] = [bytesOf(newId('one')), bytesOf(newId('two'))];
      const values = [one, two, one, new Uint8Array()];
      const known = await content().put({ tenant: 'default' }, two);
      const hashes = await content().putAll(
        values.map((bytes) => ({ holder: { tenant: 'default' }, bytes })),
      );
      expect(hashes[1]).toBe(known);
      expect(hashes[2]).toBe(hashes[0]);
      for (const [at, value] of values.entries()) {
        const kept = Buffer.from(await content().get('default', hashes[at] ?? ''));
        expect(kept.equals(value)).toBe(true);
      }
    });

    it('architecture §2.6 keeps nothing at all, too', async () => {
      const hash = await content().put({ tenant: 'default' }, new Uint8Array());
      expect((await content().get('default', hash)).byteLength).toBe(0);
    });

    it('architecture §10 a value of another tenant is missing', async () => {
      const hash = await content().put({ tenant: newId('tenant') }, bytesOf(newId('value')));
      await expect(content().get('default', hash)).rejects.toMatchObject({
        code: 'content_missing',
      });
      await expect(content().get('../default', hash)).rejects.toMatchObject({
        code: 'content_missing',
      });
    });

    it('architecture §10 a tenant whose name is no file name has content of its own', async () => {
      const hash = await content().put({ tenant: '../../Ä/*' }, bytesOf('x'));
      expect(await content().get('../../Ä/*', hash)).toEqual(expect.anything());
    });

    it.each([
      '',
      'sha256:',
      'sha256:../../../../etc/passwd',
      `sha256:${'0'.repeat(64)}`,
      `sha256:${'A'.repeat(64)}`,
    ])('architecture §2.6 %j is content_missing', async (hash) => {
      await expect(content().get('default', hash)).rejects.toMatchObject({
        code: 'content_missing',
      });
    });

    it('architecture §2.6 concurrent puts of one value agree', async () => {
      const bytes = bytesOf(newId('value'));
      const hashes = await Promise.all(
        Array.from({ length: 6 }, () => content().put({ tenant: 'default' }, bytes)),
      );
      expect(new Set(hashes).size).toBe(1);
    });

    it('architecture §2.6 above 64 MiB is payload_too_large', async () => {
      const tooLarge = new Uint8Array(64 * 1024 * 1024 + 1);
      await expect(content().put({ tenant: 'default' }, tooLarge)).rejects.toMatchObject({
        code: 'payload_too_large',
      });
    });
  });
}
