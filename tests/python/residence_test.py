"""Tensors that stay with the daemon, and memory shared with it."""

import gc

import ml_dtypes
import numpy as np
import pytest
from formulas import l1, normal

import opserve


def test_a_resident_tensor_is_used_downloaded_and_released(client):
    x, progress = normal(300, 70), []
    tensor = client.upload(
        x,
        chunk_bytes=1000,
        lease=60,
        on_progress=lambda done, total: progress.append(done),
    )
    assert (tensor.shape, tensor.dtype) == ((300, 70), np.float32)
    assert progress[-1] == x.nbytes and len(progress) == 84
    back = client.download(tensor)
    np.testing.assert_array_equal(back, x)
    assert back.flags.writeable
    result = client.l1_loss_backward(np.float32(1), tensor, -x, reduction="sum")
    np.testing.assert_array_equal(result, l1(1, x, -x))
    [end] = client.renew([tensor], 120)
    assert end > tensor.lease_end
    assert client.release([tensor]) == 1
    assert client.release([tensor]) == 0
    with pytest.raises(opserve.NotFoundError) as raised:
        client.l1_loss_backward(np.float32(1), tensor, x)
    assert raised.value.reason == "tensor_unknown"


@pytest.mark.parametrize(
    "x",
    [normal(4, 6).T, np.float32(3), normal(0, 3), normal(5).astype(ml_dtypes.bfloat16)],
    ids=["transposed", "scalar", "empty", "bfloat16"],
)
def test_what_can_be_uploaded(client, x):
    tensor = client.upload(x)
    np.testing.assert_array_equal(client.download(tensor), x)
    client.release([tensor])


def test_a_torch_tensor_can_be_uploaded(client):
    import torch
    tensor = client.upload(torch.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(client.download(tensor), np.arange(6.0).reshape(2, 3))
    client.release([tensor])


def test_a_restart_loses_tensors(start_daemon):
    daemon = start_daemon()
    with opserve.Client(daemon.target, retry=opserve.Retry(50, budget=1000)) as client:
        tensor = client.upload(normal(3))
        daemon.stop()
        daemon.start()
        with pytest.raises(opserve.TensorLostError) as raised:
            client.l1_loss_backward(np.float32(1), tensor, normal(3))
        assert raised.value.reason == "tensor_lost"


@pytest.fixture
def region(client):
    with client.create_region(1 << 20) as made:
        yield made


def run(client, *arguments, **options):
    program = opserve.Program()
    program.l1_loss_backward(*arguments, reduction="sum", **options)
    return client.execute(program, want_receipt=True)


def test_shared_memory_is_used_in_place(client, region):
    g, x, t, out = (
        region.empty(shape, np.float32) for shape in [(), (9, 7), (9, 7), (9, 7)]
    )
    g[...], x[...], t[...] = 1, normal(9, 7), normal(9, 7, seed=1)
    response = run(client, g, x, t, out=out)
    assert response.results[0] is out
    np.testing.assert_array_equal(out, l1(1, x, t))
    assert response.receipt.copied_to_device_bytes == 0
    assert response.receipt.copied_from_device_bytes == 0


def test_views_of_a_region_are_in_it(client, region):
    x = region.empty((8, 8), np.float32)
    x[...] = normal(8, 8)
    for view in (x.T, x[2:], x[:, ::2], np.broadcast_to(x[0], (5, 8))):
        target = -normal(*view.shape)
        response = run(client, np.float32(1), view, target)
        np.testing.assert_array_equal(response.results[0], l1(1, view, target))
        assert response.receipt.copied_to_device_bytes == 4 + target.nbytes


def test_torch_sees_a_region(client, region):
    import torch
    x = torch.from_numpy(region.empty((4, 4), np.float32))
    out = torch.from_numpy(region.empty((4, 4), np.float32))
    x.copy_(torch.from_numpy(normal(4, 4)))
    response = run(client, np.float32(1), x, x.T, out=out)
    assert response.results[0] is out
    assert torch.equal(out, torch.sign(x - x.T))
    assert response.receipt.copied_from_device_bytes == 0


def test_a_region_that_is_closed_is_ordinary_memory(client):
    region = client.create_region(1000)
    x = region.empty(5, np.float32)
    x[...] = normal(5)
    region.close()
    region.close()
    response = run(client, np.float32(1), x, -x)
    np.testing.assert_array_equal(response.results[0], l1(1, x, -x))
    assert response.receipt.copied_to_device_bytes > 0


def test_a_restart_leaves_regions_as_ordinary_memory(start_daemon):
    daemon = start_daemon("--enable_shm")
    with opserve.Client(daemon.target) as client:

        def copied_bytes(region):
            g, x, t, out = (region.empty(shape, np.float32) for shape in [(), 5, 5, 5])
            g[...], x[...], t[...] = 1, normal(5), normal(5, seed=1)
            response = run(client, g, x, t, out=out)
            assert response.results[0] is out
            np.testing.assert_array_equal(out, l1(1, x, t))
            return response.receipt.copied_to_device_bytes

        old = client.create_region(1000)
        assert copied_bytes(old) == 0
        daemon.stop()
        daemon.start()
        assert copied_bytes(old) > 0
        with client.create_region(1000) as new:
            assert copied_bytes(new) == 0
            assert copied_bytes(old) > 0
        old.close()


def test_a_region_is_unregistered_when_nobody_has_it(daemon):
    with opserve.Client(daemon.target) as client:
        region = client.create_region(1000)
        x = region.empty(5, np.float32)
        connection = region._connection
        assert [known.region for known in connection.list_regions()] == [region.number]
        del region
        gc.collect()
        assert connection.list_regions() == []
        x[...] = 1  # its memory is there as long as arrays are


def test_a_full_region_says_so(client, region):
    region.empty(1 << 19, np.float16)
    with pytest.raises(MemoryError, match="has no room for"):
        region.empty(1 << 19, np.float16)
    with pytest.raises(ValueError, match="0 bytes"):
        client.create_region(0)


def test_a_read_only_region_takes_no_result(client):
    with client.create_region(1000, read_only=True) as region:
        x, out = region.empty(5, np.float32), region.empty(5, np.float32)
        np.testing.assert_array_equal(
            run(client, np.float32(1), x, x + 1).results[0], -1
        )
        with pytest.raises(opserve.PermissionDeniedError):
            run(client, np.float32(1), x, x, out=out)


def test_bfloat16_in_a_region(client, region):
    x = region.empty((3,), "bfloat16")
    x[...] = 2
    result = client.l1_loss_backward(np.ones((), x.dtype), x, x - x, reduction="none")
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result.astype("f4"), 1)


def test_shared_memory_needs_the_daemon_to_allow_it(start_daemon):
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        with pytest.raises(opserve.UnavailableError, match="--enable_shm"):
            client.create_region(100)
    with opserve.Client("127.0.0.1:1") as client:
        with pytest.raises(ValueError, match="not unix:PATH"):
            client.create_region(100)
